"""Campaigns: speed beside peers, quality of results, and reliability. Run one with ``python -m bench.NAME``."""
