"""Reports on a click log: what people ask for, where the answers fail, and visitors who click as no others do."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from diptych.service.clicks.records import NEGATIVE_CLICK, is_plain

if TYPE_CHECKING:
    from diptych.encoders import Visualness, VisualQuery

MOST_ANOMALIES = 10
# Fewer visitors have no usual way to differ from: on a collection of one's own, one person makes all clicks.
_FEWEST_VISITORS, _FEWEST_CLICKS = 10, 10
# Of a query: the least share of its clicks, and the chance of so many on one item, over all that are looked at.
_QUERY_SHARE, _LEVEL = 0.2, 0.01
# Of clicks that nobody shares: the least share, robust standard deviations above the usual, share of the searches.
_UNSHARED_SHARE, _DEVIATIONS, _SEARCH_SHARE = 0.5, 6.0, 0.01
_FEWEST_OTHERS = 5
_MAD_TO_DEVIATION = 1.4826

_CLICKS = """
SELECT visitor, text, item, clicks FROM (
    SELECT visitor, query, item, count(DISTINCT search) AS clicks
    FROM clicks JOIN searches ON searches.number = search
    WHERE plain AND kind <> :negative AND searches.time >= :start AND searches.time < :end
    GROUP BY query, item, visitor
) JOIN queries ON queries.number = query
"""
_SEARCHES = "SELECT visitor, count(*) FROM searches WHERE time >= :start AND time < :end GROUP BY visitor"
_ALWAYS = {"start": float("-inf"), "end": float("inf")}


class _Clicks(NamedTuple):
    """In how many searches a known visitor clicked an item for a query, a row each, and how many clicks there are."""

    visitors: list[bytes]
    queries: list[str]
    visitor: NDArray[np.intp]
    query: NDArray[np.intp]
    answer: NDArray[np.intp]  # the number of a query and an item
    made: NDArray[np.float64]
    of_query: NDArray[np.float64]  # by whomever, unknown visitors included


def click_anomalies(connection: sqlite3.Connection, period: Mapping[str, float] = _ALWAYS) -> list[dict[str, Any]]:
    """Return at most ten findings about searches in words, those with the largest share of clicks first.

    Each has a sentence, the numbers of its visitors, and their share of the clicks: on ``query``, or on all where that
    is None. With fewer than ten known visitors there is none.

    - A query: visitors with ten clicks on it or more make a fifth of its clicks together, and each has one item far
      more often than others. Where a share p of the other visitors clicked the item and this one k of n times, the
      chance of k and more is that of n tosses with p; times all that is looked at, it is below 0.01. Who only asks
      often for a thing clicks what others click, and is not meant.
    - Odd clicks: a visitor who made a hundredth of the searches, and half of whose clicks are on items that nobody else
      clicked for the query. For each query others tell how often that happens; the visitor's excess, in standard
      deviations, is six robust standard deviations (1.4826 MAD, at least 1) above the median visitor's.
    """
    clicks = _read_clicks(connection, period)
    if len(clicks.visitors) < _FEWEST_VISITORS:
        return []
    searches = dict(connection.execute(_SEARCHES, period).fetchall())
    found = [*_concentrated(clicks), *_odd(clicks, searches)]
    return sorted(found, key=lambda one: -one["share_of_clicks"])[:MOST_ANOMALIES]


def _read_clicks(connection: sqlite3.Connection, period: Mapping[str, float]) -> _Clicks:
    visitors: dict[bytes, int] = {}
    queries: dict[str, int] = {}
    answers: dict[tuple[int, str], int] = {}
    rows, totals = [], []
    for visitor, text, item, count in connection.execute(_CLICKS, {**period, "negative": NEGATIVE_CLICK}):
        query = queries.setdefault(text, len(queries))
        totals.append((query, count))
        if visitor is not None:
            answer = answers.setdefault((query, item), len(answers))
            rows.append((visitors.setdefault(visitor, len(visitors)), query, answer, count))
    table, whole = np.array(rows, dtype=np.intp).reshape(-1, 4).T, np.array(totals, dtype=np.intp).reshape(-1, 2).T
    of_query = np.bincount(whole[0], weights=whole[1], minlength=len(queries)).astype(np.float64)
    by, of, on = table[:3]
    return _Clicks(list(visitors), list(queries), by, of, on, table[3].astype(np.float64), of_query)


def _concentrated(clicks: _Clicks) -> Iterator[dict[str, Any]]:
    """Find queries on which a few visitors make much of the clicks, and not on what the others click."""
    order = np.argsort(clicks.query, kind="stable")
    ends = np.cumsum(np.bincount(clicks.query, minlength=len(clicks.queries)))
    parts = np.split(order, ends[:-1])
    tested = [(rows, *_lone_favourites(clicks, rows)) for rows in parts if len(rows) > _FEWEST_VISITORS]
    n_tests = sum(len(chances) for _, _, chances in tested)
    for rows, visitors, chances in tested:
        few = visitors[chances * n_tests < _LEVEL]
        by_few = np.isin(clicks.visitor[rows], few)
        query = clicks.query[rows[0]]
        share = clicks.made[rows][by_few].sum() / clicks.of_query[query]
        n_others = len(np.unique(clicks.visitor[rows][~by_few]))
        if share >= _QUERY_SHARE and n_others >= _FEWEST_VISITORS:
            text, who = clicks.queries[query], "One visitor" if len(few) == 1 else f"{len(few)} visitors"
            told = (
                f"{who} made {100 * share:.0f} % of the clicks on “{text}”, mostly on items that others hardly click."
            )
            yield _finding(clicks, few, text, share, told)


def _lone_favourites(clicks: _Clicks, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the visitors with many clicks on a query, and the chance that they click one item so much oftener."""
    from scipy.special import bdtrc

    visitor, made = clicks.visitor[rows], clicks.made[rows]
    answers, answer = np.unique(clicks.answer[rows], return_inverse=True)
    n_visitors, clicked_by = len(np.unique(visitor)), np.bincount(answer)
    many = np.flatnonzero(np.bincount(visitor, weights=made) >= _FEWEST_CLICKS)
    chances = np.empty(len(many))
    for place, one in enumerate(many):
        own = visitor == one
        # The visitors who clicked an item, not their clicks: those who act together count for no more than they are.
        p = clicked_by[answer[own]] / (n_visitors + 1)
        chances[place] = len(answers) * bdtrc(made[own] - 1, int(made[own].sum()), p).min()
    return many, chances


def _odd(clicks: _Clicks, searches: Mapping[bytes | None, int]) -> Iterator[dict[str, Any]]:
    """Find visitors who click what nobody else does for the same queries."""
    n_visitors, n_queries = len(clicks.visitors), len(clicks.queries)
    unshared = (np.bincount(clicks.answer) == 1)[clicks.answer].astype(np.float64)
    _, cell = np.unique(clicks.visitor * n_queries + clicks.query, return_inverse=True)
    others, alone = (
        np.bincount(clicks.query, weights=weights)[clicks.query] - np.bincount(cell, weights=weights)[cell]
        for weights in (np.ones(len(unshared)), unshared)
    )
    # A rate of none or all of a few is no certainty.
    rate = (alone + 1) / (others + 2)
    is_judged = others >= _FEWEST_OTHERS
    judged, expected, variance, seen = (
        np.bincount(clicks.visitor, weights=is_judged * weights, minlength=n_visitors)
        for weights in (1.0, rate, rate * (1 - rate), unshared)
    )
    enough = judged >= _FEWEST_CLICKS
    if enough.sum() < _FEWEST_VISITORS:
        return
    excess = (seen - expected) / np.sqrt(np.maximum(variance, 1e-12))
    middle = np.median(excess[enough])
    spread = max(1.0, _MAD_TO_DEVIATION * float(np.median(np.abs(excess[enough] - middle))))
    made, own = (np.bincount(clicks.visitor, weights=clicks.made * part) for part in (is_judged, is_judged * unshared))
    for number in np.flatnonzero(enough & (excess > middle + _DEVIATIONS * spread)):
        asked = searches.get(clicks.visitors[number], 0) / sum(searches.values())
        strange = own[number] / made[number]
        if asked >= _SEARCH_SHARE and strange >= _UNSHARED_SHARE:
            told = f"One visitor made {100 * asked:.1f} % of all searches, and {100 * strange:.0f} % of the clicks fall"
            share = clicks.made[clicks.visitor == number].sum() / clicks.of_query.sum()
            yield _finding(clicks, [number], None, share, f"{told} on items that nobody else clicks for these queries.")


def _finding(clicks: _Clicks, visitors: Any, query: str | None, share: float, text: str) -> dict[str, Any]:
    names = [clicks.visitors[number].hex() for number in visitors]
    return {"text": text, "visitors": names, "query": query, "share_of_clicks": float(share)}


@dataclass(frozen=True)
class LogCounts:
    """Numbers of what was asked, shown, clicked and voted; times are seconds since 1970, None of an empty log."""

    searches: int
    queries: int
    results_shown: int
    clicks: int
    votes: int
    since: float | None
    until: float | None

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Self:
        """Return the numbers of a whole log."""
        row = connection.execute(
            "SELECT (SELECT count(*) FROM searches), (SELECT count(*) FROM queries),"
            " (SELECT coalesce(sum(length), 0) FROM pages INDEXED BY pages_by_place),"
            " (SELECT count(*) FROM clicks), (SELECT count(*) FROM votes),"
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
    anomalies: list[dict[str, Any]]


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
        anomalies=click_anomalies(connection, period),
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
