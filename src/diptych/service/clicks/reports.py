"""Reports on a click log: what people ask for, and where the answers fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from diptych.collection.store.dialect import Connection
from diptych.service.clicks.records import NEGATIVE_CLICK, is_plain

if TYPE_CHECKING:
    from diptych.encoders import Visualness, VisualQuery

# A search for a picture, or with something subtracted, is not one for its words.
_COUNTS = """
SELECT text, asked.searches, answered, unmatched, coalesce(used.clicks, 0)
FROM (
    SELECT query, count(*) AS searches, sum(clicked) AS answered, sum(no_good_match) AS unmatched
    FROM search WHERE plain = 1 GROUP BY query
) AS asked
JOIN query ON query.id = asked.query
LEFT JOIN (
    SELECT query, count(*) AS clicks FROM click JOIN search ON search.id = click.search
    WHERE plain = 1 AND kind <> ? GROUP BY query
) AS used ON used.query = asked.query
ORDER BY asked.searches DESC, text
"""
FREQUENT_SEARCHES = 3
_MAX_QUERIES = 50
_MAX_POSITIONS = 100
# Queries that differ are mostly rare: these hold nearly all searches, and measuring them takes a moment.
_MAX_MEASURED = 5_000
_VISUAL_ABOVE = 0.5
# The name of an uploaded picture is not a query.
_UPLOAD = "upload:"
Period = tuple[float, float]
_GROUPS = """
SELECT text, searches, clicked, last, unmatched
FROM (
    SELECT query, count(*) AS searches, sum(clicked) AS clicked, max(time) AS last, min(no_good_match) AS unmatched
    FROM search WHERE time >= ? AND time < ? AND query NOT IN (SELECT id FROM query WHERE {is_upload})
    GROUP BY query {having} ORDER BY searches DESC, last DESC, query LIMIT ?
) AS asked JOIN query ON query.id = asked.query
ORDER BY searches DESC, last DESC, query.id
"""
_FAILING = f"HAVING min(no_good_match) = 1 OR (max(clicked) = 0 AND count(*) >= {FREQUENT_SEARCHES})"
_SHOWN = "SELECT first, length, count(*) FROM page WHERE time >= ? AND time < ? GROUP BY first, length"
_CLICKED = """
SELECT position, count(DISTINCT search) FROM click
WHERE time >= ? AND time < ? AND kind <> ? AND position <= ? GROUP BY position
"""
_SEARCHES_OF_DAY = "SELECT count(*) FROM search WHERE time >= ? AND time < ?"
_CLICKS_OF_DAY = "SELECT count(*) FROM click WHERE time >= ? AND time < ? AND kind <> ?"


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
    def read(cls, db: Connection) -> Self:
        """Return the numbers of a whole log."""
        ((searches, since, until),) = db.rows("SELECT count(*), min(time), max(time) FROM search")
        return cls(
            searches=searches,
            queries=db.value("SELECT count(*) FROM query"),
            results_shown=int(db.value("SELECT sum(length) FROM page") or 0),
            clicks=db.value("SELECT count(*) FROM click"),
            since=since,
            until=until,
        )


class QueryCounts(NamedTuple):
    """A query in words, and how many of its searches had a click (``answered``) or no good match (``unmatched``)."""

    query: str
    searches: int
    answered: int
    unmatched: int
    clicks: int  # in all; a wish for less of an item is none


def query_counts(db: Connection) -> list[QueryCounts]:
    """Return every query that was asked in words, the most frequent first."""
    return [QueryCounts(text, *map(int, counts)) for text, *counts in db.rows(_COUNTS, (NEGATIVE_CLICK,))]


@lru_cache(maxsize=1 << 16)
def query_visualness(query: str) -> VisualQuery | None:
    """Return how visual a query is; None for one that is not in words.

    >>> from diptych.service.clicks.reports import query_visualness
    >>> query_visualness("a red tulip").marked, query_visualness("item:17")
    ('a [red] [tulip]', None)
    """
    return _visualness().of(query) if is_plain(query, None) else None


@cache
def _visualness() -> Visualness:
    # Imported lazily: reading the names of all concepts takes a second or two.
    from diptych.encoders import Visualness

    return Visualness()


class QueryReport(NamedTuple):
    """What was asked and clicked in some days; every entry has the names of the service's document."""

    searches: int
    clicks: int
    visual: dict[str, Any] | None
    per_day: list[dict[str, Any]]
    top: list[dict[str, Any]]
    failing: list[dict[str, Any]]
    positions: list[dict[str, Any]]


def query_report(db: Connection, *, now: float, days: int) -> QueryReport:
    """Count the searches and clicks of the last ``days`` days, today included, by the calendar of this machine.

    A query fails if none of its searches had a good match, or if it was asked three times or more and never clicked. A
    click that asks for less of an item does not count. A search is visual if more than half of its words name something
    visible.
    """
    today = datetime.combine(datetime.fromtimestamp(now), datetime.min.time())
    midnights = [(today + timedelta(days=1 - ago)).timestamp() for ago in range(days, -1, -1)]
    per_day = [_day(db, start, end) for start, end in pairwise(midnights)]
    period = midnights[0], midnights[-1]
    return QueryReport(
        searches=sum(day["searches"] for day in per_day),
        clicks=sum(day["clicks"] for day in per_day),
        visual=_visual_searches(db, period),
        per_day=per_day,
        top=[
            {"query": query, "searches": count, "clicked_share": int(clicked) / count, "last": iso_time(last)}
            | {"no_good_match": bool(unmatched), **_visible(query)}
            for query, count, clicked, last, unmatched in _groups(db, period, "", _MAX_QUERIES)
        ],
        failing=[
            {"query": query, "searches": count, "reason": "no good match" if unmatched else "never clicked"}
            | {"last": iso_time(last), **_visible(query)}
            for query, count, _, last, unmatched in _groups(db, period, _FAILING, _MAX_QUERIES)
        ],
        positions=_positions(db, period),
    )


def _groups(db: Connection, period: Period, having: str, limit: int) -> list[tuple[Any, ...]]:
    sql = _GROUPS.format(is_upload=db.contains("text"), having=having)
    return db.rows(sql, (*period, _UPLOAD, limit))


def _visible(query: str) -> dict[str, Any]:
    found = query_visualness(query)
    if found is None:
        return {"visualness": None, "visible": []}
    return {"visualness": found.visualness, "visible": [span._asdict() for span in found.spans]}


def _visual_searches(db: Connection, period: Period) -> dict[str, Any] | None:
    asked = clicked = visual_asked = visual_clicked = 0
    for query, searches, with_click, _, _ in _groups(db, period, "", _MAX_MEASURED):
        found = query_visualness(query)
        if found is None:
            continue
        asked, clicked = asked + searches, clicked + int(with_click)
        if found.visualness > _VISUAL_ABOVE:
            visual_asked, visual_clicked = visual_asked + searches, visual_clicked + int(with_click)
    if not asked:
        return None
    share = visual_clicked / clicked if clicked else None
    return {"threshold": _VISUAL_ABOVE, "searches": visual_asked / asked, "clicked": share}


def _positions(db: Connection, period: Period) -> list[dict[str, Any]]:
    shown: Counter[int] = Counter()
    for first, length, count in db.rows(_SHOWN, period):
        for position in range(first, min(first + length, _MAX_POSITIONS + 1)):
            shown[position] += count
    clicked: dict[int, int] = dict(db.rows(_CLICKED, (*period, NEGATIVE_CLICK, _MAX_POSITIONS)))
    return [
        {"position": position, "shown": shown[position], "clicked": clicked.get(position, 0)}
        for position in sorted(shown.keys() | clicked.keys())
    ]


def _day(db: Connection, start: float, end: float) -> dict[str, Any]:
    searches = db.value(_SEARCHES_OF_DAY, (start, end))
    clicks = db.value(_CLICKS_OF_DAY, (start, end, NEGATIVE_CLICK))
    return {"day": datetime.fromtimestamp(start).date().isoformat(), "searches": searches, "clicks": clicks}


def iso_time(time: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, in UTC and to the second."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
