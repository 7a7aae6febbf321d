"""The click log as a table for other programs, and as searches to learn from."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from diptych.data.text_files import written_cells
from diptych.errors import MissingPackageError, UnknownNameError
from diptych.service.clicks.database import click_log_error, connect
from diptych.service.clicks.records import NEGATIVE_CLICK

ExportKind = Literal["triads", "events", "impressions"]
ExportFormat = Literal["csv", "tsv", "jsonl", "parquet"]
EXPORT_KINDS: tuple[ExportKind, ...] = get_args(ExportKind)
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_ROWS_AT_ONCE = 5_000
_PARAMETERS = {"negative": NEGATIVE_CLICK}
_NUMBERS = {"clicks", "position", "shown", "results", "clicked"}

# How often each result was shown and clicked; a query chooses the columns before it and the groups behind it.
_SHOWN_AND_CLICKED = """
    count(DISTINCT searches.number) AS shown,
    count(DISTINCT (
        SELECT clicks.search FROM clicks WHERE clicks.search = searches.number AND kind <> :negative
        AND clicks.position = first + shown_item.key AND clicks.item = shown_item.value
    )) AS clicked
FROM searches JOIN pages ON pages.search = searches.number JOIN queries ON queries.number = query
JOIN retrievers ON retrievers.number = retriever, json_each(pages.items) AS shown_item
"""
_QUERIES: dict[ExportKind, str] = {
    "triads": """
        SELECT queries.text AS query, item, count(DISTINCT search) AS clicks
        FROM clicks JOIN searches ON searches.number = search JOIN queries ON queries.number = query
        WHERE plain AND kind <> :negative
        GROUP BY queries.text, item ORDER BY queries.text, clicks DESC, item
    """,
    "events": """
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', clicks.time, 'unixepoch') AS time, lower(hex(searches.id)) AS search,
            queries.text AS query, terms, target, name AS retriever, fingerprint, item, caption_id, kind, position,
            nullif(lower(hex(visitor)), '') AS visitor,
            (SELECT sum(length) FROM pages WHERE pages.search = clicks.search) AS results,
            (SELECT sum(count) FROM temp.places WHERE places.target = searches.target
                AND first <= position AND position < first + length) AS shown
        FROM clicks JOIN searches ON searches.number = search JOIN queries ON queries.number = query
        JOIN retrievers ON retrievers.number = retriever
        ORDER BY clicks.id
    """,
    "impressions": f"""
        SELECT queries.text AS query, target, name AS retriever, fingerprint, shown_item.value AS item,
            first + shown_item.key AS position, {_SHOWN_AND_CLICKED}
        GROUP BY searches.query, searches.retriever, target, shown_item.value, first + shown_item.key
        ORDER BY queries.text, searches.retriever, target, first + shown_item.key, shown_item.value
    """,
}

_PLACES = """
CREATE TEMP TABLE places AS SELECT target, first, length, count(*) AS count
FROM pages JOIN searches ON searches.number = search GROUP BY target, first, length
"""


def write_export(connection: sqlite3.Connection, stream: BinaryIO, what: str, format: str) -> int:
    """Write a table to a stream of bytes, a few thousand rows at a time, and return their number."""
    if what not in _QUERIES:
        raise UnknownNameError("export", what, EXPORT_KINDS)
    if format not in EXPORT_FORMATS:
        raise UnknownNameError("export format", format, EXPORT_FORMATS)
    if what == "events":
        connection.execute(_PLACES)
    cursor = connection.execute(_QUERIES[what], _PARAMETERS)
    names = [column[0] for column in cursor.description]
    count = 0

    def batches() -> Iterator[list[Any]]:
        nonlocal count
        while batch := cursor.fetchmany(_ROWS_AT_ONCE):
            count += len(batch)
            yield batch

    if format == "parquet":
        _write_parquet(stream, names, batches())
        return count
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        if format == "jsonl":
            for batch in batches():
                rows = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in batch)
                text.write("".join(f"{row}\n" for row in rows))
        else:
            writer = csv.writer(text, delimiter="," if format == "csv" else "\t", lineterminator="\n")
            writer.writerow(names)
            for batch in batches():
                writer.writerows(map(written_cells, batch))
    finally:
        # The stream belongs to the caller, who closes it.
        text.detach()
    return count


def _write_parquet(stream: BinaryIO, names: Sequence[str], batches: Iterator[list[Any]]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackageError("writing Parquet files", "pyarrow") from error
    schema = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in names])
    with parquet.ParquetWriter(stream, schema) as writer:
        for batch in batches:
            columns = zip(*batch, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


SearchRow = tuple[int, str | None, float, str, int, tuple[str, ...], frozenset[int]]

# In the order of the index in time, and then of the pages, so that nothing is sorted.
_SEARCHES = """
SELECT searches.number, nullif(lower(hex(visitor)), ''), searches.time, queries.text, first, items, (
    SELECT group_concat(position) FROM clicks WHERE clicks.search = searches.number AND kind <> :negative
    AND position >= first AND position < first + length
    AND item = json_extract(items, '$[' || (position - first) || ']')
)
FROM searches INDEXED BY searches_in_time CROSS JOIN pages ON pages.search = searches.number
CROSS JOIN queries ON queries.number = query
WHERE plain AND target = 'images'
ORDER BY searches.time, searches.number, first, length
"""


def text_query_searches(path: Path) -> Iterator[SearchRow]:
    """Yield (search, visitor, time, query, first position, items in order, clicked positions) of a click log's file.

    There is a row for each page; pages of a search share its number, visitor and time, and follow one another. Searches
    come in the order of their times. Only those for pictures by words alone count, since others say nothing about the
    words; all retrievers are taken together, since a click at a position is worth the same whoever put the item there.
    """
    try:
        with closing(connect(path)) as connection:
            for number, visitor, time, query, first, items, clicked in connection.execute(_SEARCHES, _PARAMETERS):
                places = frozenset(map(int, clicked.split(","))) if clicked else frozenset()
                yield number, visitor, time, query, first, tuple(json.loads(items)), places
    except sqlite3.Error as error:
        raise click_log_error(path, error) from error
