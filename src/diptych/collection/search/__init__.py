"""From a query to ranked answers: read snapshot.py first."""
