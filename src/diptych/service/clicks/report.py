"""Reports on a click log: what people ask for, and where the answers fail."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from diptych.service.clicks.records import NEGATIVE_CLICK, is_plain

if TYPE_CHECKING:
    from diptych.encoders import Visualness, VisualQuery


@dataclass(frozen=True)
class LogCounts:
    """Numbers of what was asked, shown and clicked; times are seconds since 1970, None of an empty log."""

    searches: int
    queries: int
    results_shown: int
    clicks: int
    since: float | None
    until: float | None

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Self:
        """Return the numbers of a whole log."""
        row = connection.execute(
            "SELECT (SELECT count(*) FROM searches), (SELECT count(*) FROM queries),"
            " (SELECT coalesce(sum(length), 0) FROM pages INDEXED BY pages_by_place),"
            " (SELECT count(*) FROM clicks),"
            " (SELECT min(time) FROM searches), (SELECT max(time) FROM searches)"
        ).fetchone()
        return cls(*row)


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
    """A query in words, and how many of its searches had a click (``answered``) or no good match (``unmatched``)."""

    query: str
    searches: int
    answered: int
    unmatched: int
    clicks: int  # in all; a wish for less of an item is none


def query_counts(connection: sqlite3.Connection) -> list[QueryCounts]:
    """Return every query that was asked in words, the most frequent first."""
    return [QueryCounts(*row) for row in connection.execute(_COUNTS, (NEGATIVE_CLICK,))]


@lru_cache(maxsize=1 << 16)
def query_visualness(query: str) -> VisualQuery | None:
    """Return how visual a query is; None for one that is not in words.

    >>> from diptych.service.clicks.report import query_visualness
    >>> query_visualness("a red tulip").marked, query_visualness("item:17")
    ('a [red] [tulip]', None)
    """
    return _visualness().of(query) if is_plain(query, None) else None


@cache
def _visualness() -> Visualness:
    # Reading the names of all concepts takes a second or two, which only those wait for who look at a log.
    from diptych.encoders import Visualness

    return Visualness()


FREQUENT_SEARCHES = 3
_MOST_QUERIES = 50
_MOST_POSITIONS = 100
# Queries that differ are mostly rare: these hold nearly all searches, and measuring them takes a moment.
_MOST_MEASURED = 5_000
_VISUAL_ABOVE = 0.5

# Scanning this index in order groups by query without sorting; SQLite would choose the one in time, and sort.
# The name of a picture that somebody has sent is nothing that anybody asks for.
_PICTURES = "WITH pictures AS (SELECT number FROM queries WHERE text GLOB '*upload:*')"
_GROUPS = """
{pictures}
SELECT queries.text, searches, share, last, no_good_match
FROM (
    SELECT query, count(*) AS searches, avg(clicked) AS share, max(time) AS last, min(no_good_match) AS no_good_match
    FROM searches INDEXED BY searches_by_query
    WHERE time >= :start AND time < :end AND query NOT IN pictures
    GROUP BY query HAVING {condition}
    ORDER BY searches DESC, last DESC, query LIMIT :limit
) JOIN queries ON queries.number = query
ORDER BY searches DESC, last DESC, query
"""

_TOP = _GROUPS.format(pictures=_PICTURES, condition="true")
_FAILING = _GROUPS.format(
    pictures=_PICTURES, condition="min(no_good_match) = 1 OR (max(clicked) = 0 AND count(*) >= :often)"
)

_SHOWN = """
SELECT first, length, count(*) FROM pages INDEXED BY pages_by_place
WHERE time >= :start AND time < :end GROUP BY first, length
"""

_CLICKED = """
SELECT position, count(DISTINCT search) FROM clicks INDEXED BY clicks_by_place
WHERE time >= :start AND time < :end AND kind <> :against AND position <= :furthest GROUP BY position
"""

_ASKED = f"""
{_PICTURES}
SELECT queries.text, searches, clicked
FROM (
    SELECT query, count(*) AS searches, sum(clicked) AS clicked FROM searches INDEXED BY searches_by_query
    WHERE time >= :start AND time < :end AND query NOT IN pictures
    GROUP BY query ORDER BY searches DESC, query LIMIT :limit
) JOIN queries ON queries.number = query
"""

_SEARCHES_OF_DAY = "SELECT count(*) FROM searches WHERE time >= ? AND time < ?"
_CLICKS_OF_DAY = "SELECT count(*) FROM clicks WHERE time >= ? AND time < ? AND kind <> ?"


class QueryReport(NamedTuple):
    """What was asked and clicked in some days; every entry has the names of the service's document."""

    searches: int
    clicks: int
    visual: dict[str, Any] | None
    per_day: list[dict[str, Any]]
    top: list[dict[str, Any]]
    failing: list[dict[str, Any]]
    positions: list[dict[str, Any]]


def query_report(connection: sqlite3.Connection, *, now: float, days: int) -> QueryReport:
    """Count the searches and clicks of the last ``days`` days, today included, by the calendar of this machine.

    A query fails if none of its searches had a good match, or if it was asked three times or more and never clicked. A
    click that asks for less of an item does not count. A search is visual if more than half of its words name something
    visible.
    """
    today = datetime.combine(datetime.fromtimestamp(now), datetime.min.time())
    midnights = [(today + timedelta(days=1 - ago)).timestamp() for ago in range(days, -1, -1)]
    per_day = [_day(connection, start, end) for start, end in pairwise(midnights)]
    period = {"start": midnights[0], "end": midnights[-1]}
    bounds = {**period, "limit": _MOST_QUERIES, "often": FREQUENT_SEARCHES}
    return QueryReport(
        searches=sum(day["searches"] for day in per_day),
        clicks=sum(day["clicks"] for day in per_day),
        visual=_visual_searches(connection, period),
        per_day=per_day,
        top=[
            {"query": query, "searches": count, "clicked_share": share, "last": iso_time(last)}
            | {"no_good_match": bool(no_good_match), **_visible(query)}
            for query, count, share, last, no_good_match in connection.execute(_TOP, bounds)
        ],
        failing=[
            {"query": query, "searches": count, "reason": "no good match" if no_good_match else "never clicked"}
            | {"last": iso_time(last), **_visible(query)}
            for query, count, _, last, no_good_match in connection.execute(_FAILING, bounds)
        ],
        positions=_positions(connection, period),
    )


def _visible(query: str) -> dict[str, Any]:
    found = query_visualness(query)
    if found is None:
        return {"visualness": None, "visible": []}
    return {"visualness": found.visualness, "visible": [span._asdict() for span in found.spans]}


def _visual_searches(connection: sqlite3.Connection, period: dict[str, float]) -> dict[str, Any] | None:
    asked = clicked = visual_asked = visual_clicked = 0
    for query, searches, with_click in connection.execute(_ASKED, {**period, "limit": _MOST_MEASURED}):
        found = query_visualness(query)
        if found is None:
            continue
        asked, clicked = asked + searches, clicked + with_click
        if found.visualness > _VISUAL_ABOVE:
            visual_asked, visual_clicked = visual_asked + searches, visual_clicked + with_click
    if not asked:
        return None
    share = visual_clicked / clicked if clicked else None
    return {"threshold": _VISUAL_ABOVE, "searches": visual_asked / asked, "clicked": share}


def _positions(connection: sqlite3.Connection, period: dict[str, float]) -> list[dict[str, Any]]:
    shown: Counter[int] = Counter()
    for first, length, count in connection.execute(_SHOWN, period):
        for position in range(first, min(first + length, _MOST_POSITIONS + 1)):
            shown[position] += count
    bounds = {**period, "against": NEGATIVE_CLICK, "furthest": _MOST_POSITIONS}
    clicked = dict(connection.execute(_CLICKED, bounds).fetchall())
    return [
        {"position": position, "shown": shown[position], "clicked": clicked.get(position, 0)}
        for position in sorted(shown.keys() | clicked.keys())
    ]


def _day(connection: sqlite3.Connection, start: float, end: float) -> dict[str, Any]:
    (searches,) = connection.execute(_SEARCHES_OF_DAY, (start, end)).fetchone()
    (clicks,) = connection.execute(_CLICKS_OF_DAY, (start, end, NEGATIVE_CLICK)).fetchone()
    return {"day": datetime.fromtimestamp(start).date().isoformat(), "searches": searches, "clicks": clicks}


def iso_time(time: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, in UTC and to the second."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
