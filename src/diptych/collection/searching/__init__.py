"""From a request to answers, on one transaction of the store."""
