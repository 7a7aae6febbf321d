"""The service: a REST API and a web page over collections, with a log of what was asked and clicked."""
