"""The click log as a table for other programs, and as searches to learn from."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.data.text_files import written_cells
from diptych.errors import UnknownNameError
from diptych.service.clicks.records import NEGATIVE_CLICK

if TYPE_CHECKING:
    from diptych.collection.learning.search_log import SearchRow

ExportKind = Literal["triads", "events", "impressions"]
ExportFormat = Literal["csv", "jsonl"]
EXPORT_KINDS: tuple[ExportKind, ...] = get_args(ExportKind)
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_ROWS_AT_ONCE = 5_000
_QUERIES_AT_ONCE = 200
_SEARCHES_AT_ONCE = 2_000
Row = tuple[Any, ...]

_EVENT_NAMES = (
    "time search query terms target retriever fingerprint item caption_id kind position visitor results shown"
)
_EVENTS = """
SELECT click.id, click.time, search.name, query.text, terms, target, model, fingerprint, item, caption, kind, position,
    visitor, (SELECT sum(length) FROM page WHERE page.search = click.search)
FROM click JOIN search ON search.id = click.search JOIN query ON query.id = search.query
WHERE click.id > ? ORDER BY click.id
"""
_PLACES = """
SELECT target, first, length, count(*) FROM page JOIN search ON search.id = page.search GROUP BY target, first, length
"""
# Some queries at a time, in the order of their texts, so that only their counts are in memory.
_QUERIES = "SELECT text, id FROM query WHERE (text, id) > (?, ?) ORDER BY text, id"
_SEARCHES = """
SELECT search.time, search.id, first, length, visitor, query.text, items
FROM search JOIN page ON page.search = search.id JOIN query ON query.id = search.query
WHERE plain = 1 AND target = 'images' AND (search.time, search.id, first, length) > (?, ?, ?, ?)
ORDER BY search.time, search.id, first, length
"""


def _pieces(store: Store, sql: str, start: Row, limit: int) -> Iterator[list[Row]]:
    """Yield the rows of a query, some thousands at a time, each piece in a transaction of its own.

    ``sql`` begins with the columns of its order and compares them with ``?``: those of the last row, or ``start``.
    """
    while True:
        with store.reading() as db:
            rows = db.rows(f"{sql} LIMIT {limit}", start)
        if rows:
            yield rows
        if len(rows) < limit:
            return
        start = rows[-1][: len(start)]


def _clicks_of(db: Connection, searches: IntArray | Sequence[int]) -> Mapping[int, list[Row]]:
    """Return the wanted clicks of searches, as position and item."""
    chosen, values = db.among("search", searches)
    found: dict[int, list[Row]] = defaultdict(list)
    sql = f"SELECT search, position, item FROM click WHERE {chosen} AND kind <> ?"
    for search, position, item in db.rows(sql, (*values, NEGATIVE_CLICK)):
        found[search].append((position, item))
    return found


def _events(store: Store) -> Iterator[Row]:
    """Yield all clicks, each with how often its position was shown."""
    with store.reading() as db:
        places = db.rows(_PLACES)
    counts: dict[tuple[str, int], int] = {}
    for piece in _pieces(store, _EVENTS, (0,), _ROWS_AT_ONCE):
        for _, time, *middle, visitor, results in piece:
            target, position = middle[3], middle[-1]
            shown = counts.get((target, position))
            if shown is None:
                shown = counts[target, position] = sum(
                    count for of, first, length, count in places if of == target and first <= position < first + length
                )
            moment = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            yield moment, *middle, visitor, None if results is None else int(results), shown


def _triads(store: Store) -> Iterator[Row]:
    """Yield how many searches for a query alone had a click on an item."""
    for queries in _pieces(store, _QUERIES, ("", 0), _QUERIES_AT_ONCE):
        texts = {number: text for text, number in queries}
        with store.reading() as db:
            chosen, values = db.among("query", list(texts))
            counted = db.rows(
                "SELECT query, item, count(DISTINCT search.id) FROM search JOIN click ON click.search = search.id"
                f" WHERE {chosen} AND plain = 1 AND kind <> ? GROUP BY query, item",
                (*values, NEGATIVE_CLICK),
            )
        counts = [(texts[query], item, count) for query, item, count in counted]
        yield from sorted(counts, key=lambda row: (row[0], -row[2], row[1]))


def _impressions(store: Store) -> Iterator[Row]:
    """Yield how many searches showed an item at a position, and in how many it was clicked there."""
    for queries in _pieces(store, _QUERIES, ("", 0), _QUERIES_AT_ONCE):
        texts = {number: text for text, number in queries}
        with store.reading() as db:
            chosen, values = db.among("query", list(texts))
            searches = np.sort(db.ids(f"SELECT id FROM search WHERE {chosen}", values))
        counts: dict[Row, list[int]] = defaultdict(lambda: [0, 0])
        for start in range(0, len(searches), _SEARCHES_AT_ONCE):
            with store.reading() as db:
                piece = searches[start : start + _SEARCHES_AT_ONCE]
                chosen, values = db.among("page.search", piece)
                pages = db.rows(
                    "SELECT search.id, query, target, model, fingerprint, first, items FROM page"
                    f" JOIN search ON search.id = page.search WHERE {chosen}",
                    values,
                )
                clicks = _clicks_of(db, piece)
            # Pages of one search may overlap.
            shown = {
                (search, texts[query], *facts, position, item)
                for search, query, *facts, first, items in pages
                for position, item in enumerate(json.loads(items), first)
            }
            for search, *key in shown:
                count = counts[tuple(key)]
                count[0] += 1
                count[1] += tuple(key[-2:]) in clicks.get(search, ())
        for (query, target, model, fingerprint, position, item), count in sorted(counts.items()):
            yield query, target, model, fingerprint, item, position, *count


_TABLES: dict[ExportKind, tuple[Sequence[str], Callable[[Store], Iterator[Row]]]] = {
    "triads": (("query", "item", "clicks"), _triads),
    "events": (_EVENT_NAMES.split(), _events),
    "impressions": (
        ("query", "target", "retriever", "fingerprint", "item", "position", "shown", "clicked"),
        _impressions,
    ),
}


def write_export(store: Store, stream: BinaryIO, what: str, format: str) -> int:
    """Write a table to a stream of bytes, a few thousand rows at a time, and return their number."""
    if what not in _TABLES:
        raise UnknownNameError("export", what, EXPORT_KINDS)
    if format not in EXPORT_FORMATS:
        raise UnknownNameError("export format", format, EXPORT_FORMATS)
    names, table = _TABLES[what]
    rows, count = table(store), 0

    def batches() -> Iterator[list[Row]]:
        nonlocal count
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            count += len(batch)
            yield batch

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        if format == "jsonl":
            for batch in batches():
                lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in batch)
                text.write("".join(f"{line}\n" for line in lines))
        else:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(names)
            for batch in batches():
                writer.writerows(map(written_cells, batch))
    finally:
        # The stream belongs to the caller, who closes it.
        text.detach()
    return count


def text_query_searches(store: Store) -> Iterator[SearchRow]:
    """Yield (search, visitor, time, query, first position, items in order, clicked positions) of a click log.

    There is a row for each page; pages of a search share its number, visitor and time, and follow one another. Searches
    come in the order of their times. Only those for pictures by words alone count, since others say nothing about the
    words; all retrievers are taken together, since a click at a position is worth the same for each of them.
    """
    for piece in _pieces(store, _SEARCHES, (float("-inf"), 0, 0, 0), _ROWS_AT_ONCE):
        with store.reading() as db:
            clicks = _clicks_of(db, sorted({search for _, search, *_ in piece}))
        for time, search, first, _, visitor, query, text in piece:
            items = tuple(json.loads(text))
            # Clicks on other pages of the search are counted there.
            clicked = (
                position
                for position, item in clicks.get(search, ())
                if first <= position < first + len(items) and items[position - first] == item
            )
            yield search, visitor, time, query, first, items, frozenset(clicked)


def has_searches(store: Store) -> bool:
    """Return True if any search was logged."""
    with store.reading() as db:
        return db.value("SELECT id FROM search LIMIT 1") is not None


def logged_queries(store: Store) -> list[str]:
    """Return what was searched for by words, each text once."""
    return list(dict.fromkeys(query for _, _, _, query, *_ in text_query_searches(store)))
