"""Reports on a click log: what people ask for, and where the answers fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from diptych.collection.store.dialect import Connection
from diptych.service.clicks.records import NEGATIVE_CLICK, is_plain, iso_time

if TYPE_CHECKING:
    from diptych.encoders import Visualness, VisualQuery

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


@dataclass(frozen=True)
class VisibleWords:
    """A part of a query that is the name of something that can be seen in pictures."""

    start: int
    """Where it begins in the query, in characters from 0."""
    end: int
    """The character behind it."""
    concept: str
    """The name, as ImageNet has it."""


@dataclass(frozen=True)
class DayCount:
    """How much was asked and clicked on one day."""

    day: str
    """The date, ISO 8601, by the calendar of the service."""
    searches: int
    """How many searches."""
    clicks: int
    """How many clicks."""


@dataclass(frozen=True)
class FrequentQuery:
    """How often a query was asked, and how well it did."""

    query: str
    """In lower case."""
    searches: int
    """How often it was asked."""
    clicked_share: float
    """The share of these searches in which something was clicked."""
    last: str
    """When it was asked last, ISO 8601."""
    no_good_match: bool
    """Whether none of these searches had a good match."""
    visualness: float | None
    """The share of its words that name something visible; null where that is not known."""
    visible: tuple[VisibleWords, ...]
    """These names, from left to right."""


@dataclass(frozen=True)
class PositionCount:
    """How often a place was shown and clicked."""

    position: int
    """The place, from 1."""
    shown: int
    """How often an answer was shown there."""
    clicked: int
    """In how many searches it was clicked."""


@dataclass(frozen=True)
class VisualSearches:
    """Which share of the searches in words asks for what can be seen; of very many queries, the most frequent count."""

    threshold: float
    """A query is visual if its visualness is above this."""
    searches: float
    """The share of visual ones among all searches."""
    clicked: float | None
    """The share of visual ones among searches with a click: larger, if visual ones are answered better."""


@dataclass(frozen=True)
class QueryReport:
    """What was asked, what was clicked, and where the answers failed; a wish for less of an item is no click."""

    log: bool = False
    """Whether searches and clicks are remembered at all."""
    searches: int = 0
    """How many searches in these days."""
    clicks: int = 0
    """How many clicks in these days."""
    visual: VisualSearches | None = None
    """How much is asked for what can be seen; null where that is not known, or nothing was asked in words."""
    per_day: tuple[DayCount, ...] = ()
    """Every day, the oldest first."""
    top: tuple[FrequentQuery, ...] = ()
    """The most frequent queries."""
    failing: tuple[FrequentQuery, ...] = ()
    """The most frequent queries without a good match, or never clicked though they were asked often."""
    positions: tuple[PositionCount, ...] = ()
    """The first hundred places of the answers."""


def query_report(db: Connection, *, now: float, days: int) -> QueryReport:
    """Count the searches and clicks of the last ``days`` days, today included, by the calendar of this machine.

    A query fails if none of its searches had a good match, or if it was asked three times or more and never clicked. A
    click that asks for less of an item does not count. A search is visual if more than half of its words name something
    visible.
    """
    today = datetime.combine(datetime.fromtimestamp(now), datetime.min.time())
    midnights = [(today + timedelta(days=1 - ago)).timestamp() for ago in range(days, -1, -1)]
    per_day = tuple(_day(db, start, end) for start, end in pairwise(midnights))
    period = midnights[0], midnights[-1]
    return QueryReport(
        log=True,
        searches=sum(day.searches for day in per_day),
        clicks=sum(day.clicks for day in per_day),
        visual=_visual_searches(db, period),
        per_day=per_day,
        top=_frequent_queries(db, period, ""),
        failing=_frequent_queries(db, period, _FAILING),
        positions=_positions(db, period),
    )


def _groups(db: Connection, period: Period, having: str, limit: int) -> list[tuple[Any, ...]]:
    sql = _GROUPS.format(is_upload=db.contains("text"), having=having)
    return db.rows(sql, (*period, _UPLOAD, limit))


def _frequent_queries(db: Connection, period: Period, having: str) -> tuple[FrequentQuery, ...]:
    queries = []
    for query, searches, clicked, last, unmatched in _groups(db, period, having, _MAX_QUERIES):
        found = query_visualness(query)
        spans = () if found is None else tuple(VisibleWords(*span) for span in found.spans)
        visualness = None if found is None else found.visualness
        share = int(clicked) / searches
        queries.append(FrequentQuery(query, searches, share, iso_time(last), bool(unmatched), visualness, spans))
    return tuple(queries)


def _visual_searches(db: Connection, period: Period) -> VisualSearches | None:
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
    return VisualSearches(_VISUAL_ABOVE, visual_asked / asked, share)


def _positions(db: Connection, period: Period) -> tuple[PositionCount, ...]:
    shown: Counter[int] = Counter()
    for first, length, count in db.rows(_SHOWN, period):
        for position in range(first, min(first + length, _MAX_POSITIONS + 1)):
            shown[position] += count
    clicked: dict[int, int] = dict(db.rows(_CLICKED, (*period, NEGATIVE_CLICK, _MAX_POSITIONS)))
    places = sorted(shown.keys() | clicked.keys())
    return tuple(PositionCount(place, shown[place], clicked.get(place, 0)) for place in places)


def _day(db: Connection, start: float, end: float) -> DayCount:
    searches = db.value(_SEARCHES_OF_DAY, (start, end))
    clicks = db.value(_CLICKS_OF_DAY, (start, end, NEGATIVE_CLICK))
    return DayCount(datetime.fromtimestamp(start).date().isoformat(), searches, clicks)
