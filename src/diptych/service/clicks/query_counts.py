"""How often each query was asked, and with which success."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from diptych.service.clicks.kinds import AGAINST

# A search for a picture, or with something subtracted, is not one for its words.
_COUNTS = """
SELECT text, asked.searches, answered, unmatched, coalesce(used.clicks, 0)
FROM (
    SELECT query, count(*) AS searches, sum(clicked) AS answered, sum(no_good_match) AS unmatched
    FROM searches WHERE plain GROUP BY query
) AS asked
JOIN queries ON queries.number = asked.query
LEFT JOIN (
    SELECT query, count(*) AS clicks FROM clicks JOIN searches ON searches.number = clicks.search
    WHERE plain AND kind <> ? GROUP BY query
) AS used ON used.query = asked.query
ORDER BY asked.searches DESC, text
"""


class QueryCounts(NamedTuple):
    """A query in words and what became of it."""

    query: str
    searches: int
    """How often it was asked."""
    answered: int
    """In how many of these searches something was clicked."""
    unmatched: int
    """How many of them had no good match."""
    clicks: int
    """How many clicks there were in all; a wish for less of an item is none."""


def query_counts(connection: sqlite3.Connection) -> list[QueryCounts]:
    """Return every query that was asked in words, the most frequent first."""
    return [QueryCounts(*row) for row in connection.execute(_COUNTS, (AGAINST,))]
