"""Rows of clicks in files: tables with commas or tabs, JSON lines and Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from diptych.arrow import arrow_package
from diptych.data.text_files import BadRow, delimited_rows, first_named, normalised_name
from diptych.errors import DiptychError, InvalidInputError

QUERY_NAMES = ("query", "queries", "text", "search", "keywords")
IMAGE_NAMES = ("image", "item", "image_id", "item_id", "image_key", "key", "picture", "photo", "file", "document")
CLICK_NAMES = ("clicks", "click", "click_count", "clickcount", "n_clicks", "count")
TIME_NAMES = ("time", "timestamp", "date", "datetime")
# Tables that hold what was shown, or single events of several kinds, would be counted wrongly row by row.
_EVENT_NAMES = {"shown", "clicked", "position", "kind", "impressions"}
PLAIN_COLUMNS = ("query", "image", "clicks")
_SAMPLED_ROWS = 200
_PARQUET_ROWS_AT_ONCE = 65_536


class TriadRow(NamedTuple):
    """One row as it was found, not yet checked; ``place`` is its line, or its row in a file without lines."""

    place: int
    query: Any
    image: Any
    clicks: Any
    time: Any


class ClickColumns(NamedTuple):
    """The names, or the places, of the columns; without clicks every row is one click."""

    query: Any
    image: Any
    clicks: Any
    time: Any

    def row(self, place: int, cells: Any) -> TriadRow:
        """Return what the cells of a row say, by name or by place."""
        clicks = 1 if self.clicks is None else cells[self.clicks]
        return TriadRow(
            place, cells[self.query], cells[self.image], clicks, None if self.time is None else cells[self.time]
        )


def find_click_columns(names: Sequence[str], source: str) -> ClickColumns | None:
    """Return which of the names mean what, or None where they name no query and image."""
    query, image, clicks, time = (
        first_named(known, names) for known in (QUERY_NAMES, IMAGE_NAMES, CLICK_NAMES, TIME_NAMES)
    )
    if query is None or image is None:
        return None
    if clicks is None and _EVENT_NAMES & set(map(normalised_name, names)):
        raise InvalidInputError(
            f"{source} holds events or impressions, not clicks per query and image; export the triads instead "
            "(GET /v1/collections/NAME/clicks)"
        )
    return ClickColumns(query, image, clicks, time)


def open_text(path: Path) -> IO[str]:
    """Open a text file, or one packed by gzip; bytes that are not UTF-8 become the replacement character."""
    if path.suffix.lower() == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline=""))
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def read_named_table(path: Path, delimiter: str) -> Iterator[TriadRow | BadRow]:
    """Yield the rows of a table whose first row names the columns; quotes may stand around a field."""
    with open_text(path) as stream:
        rows = delimited_rows(stream, delimiter)
        first = next(rows, (1, []))
        names = [] if isinstance(first, BadRow) else first[1]
        columns = find_click_columns(names, str(path))
        if columns is None:
            raise InvalidInputError(
                f"{path}: line 1 must name the columns, such as query{delimiter}image{delimiter}clicks; it holds "
                f"{delimiter.join(names)[:80]!r}"
            )
        yield from _triad_rows(rows, names, columns)


def read_plain_table(path: Path, names: Sequence[str] | None = None) -> Iterator[TriadRow | BadRow]:
    """Yield the rows of a table without names and quotes, as Clickture comes: query, image key, clicks."""
    names = plain_columns(path) if names is None else names
    columns = find_click_columns(names, str(path))
    if columns is None:
        raise InvalidInputError(f"columns must name a query and an image, got {', '.join(names)}")
    with open_text(path) as stream:
        yield from _triad_rows(delimited_rows(stream, "\t", quotes=False), names, columns)


def plain_columns(path: Path) -> tuple[str, ...]:
    """Return the order of the columns of a table without names as its first rows show it: image keys hold no spaces."""
    with open_text(path) as stream:
        rows = [line.rstrip("\r\n").split("\t") for line in islice(stream, _SAMPLED_ROWS)]
    width = min(len(PLAIN_COLUMNS), max((len(row) for row in rows), default=0))
    if width < 2:
        raise InvalidInputError(f"{path} has no tabs in its first lines; a triad is query, image key and clicks")
    with_spaces = [sum(" " in row[place].strip() for row in rows if len(row) > place) for place in (0, 1)]
    order = ("image", "query", "clicks") if with_spaces[1] > with_spaces[0] else PLAIN_COLUMNS
    return order[:width]


def first_line(path: Path) -> str:
    """Return the first line that is not empty."""
    with open_text(path) as stream:
        return next((line.strip("\r\n") for line in stream if line.strip()), "")


def _triad_rows(
    rows: Iterable[tuple[int, list[str]] | BadRow], names: Sequence[str], columns: ClickColumns
) -> Iterator[TriadRow | BadRow]:
    place_of = {name: place for place, name in enumerate(names)}
    places = ClickColumns(*(None if name is None else place_of[name] for name in columns))
    width = len(names)
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        line, cells = row
        if len(cells) != width:
            yield BadRow(line, f"it has {len(cells)} fields, but there are {width} columns")
            continue
        yield places.row(line, cells)


def read_click_lines(path: Path) -> Iterator[TriadRow | BadRow]:
    """Yield the triad of every line; the names of an object's values may differ from line to line."""
    found: dict[tuple[str, ...], ClickColumns | None] = {}
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield BadRow(number, f"it is not valid JSON ({error})")
                continue
            names = tuple(entry) if isinstance(entry, dict) else ()
            if names not in found:
                found[names] = find_click_columns(names, str(path))
            columns = found[names]
            if columns is None:
                yield BadRow(number, 'it is no object such as {"query": "red car", "image": "1.jpg", "clicks": 2}')
                continue
            yield columns.row(number, entry)


def read_parquet(path: Path) -> Iterator[TriadRow | BadRow]:
    """Yield the rows of a file, of which only one batch is in memory."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        columns = find_click_columns(names, str(path))
        if columns is None:
            raise InvalidInputError(f"{path} needs the columns query, image and clicks; it has {', '.join(names)}")
        wanted = [name for name in columns if name is not None]
        place = 0
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS_AT_ONCE, columns=wanted):
            listed = {name: batch.column(name).to_pylist() for name in wanted}
            nothing = [None] * len(batch)
            clicks = [1] * len(batch) if columns.clicks is None else listed[columns.clicks]
            times = nothing if columns.time is None else listed[columns.time]
            for row in zip(listed[columns.query], listed[columns.image], clicks, times, strict=True):
                place += 1
                yield TriadRow(place, *row)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file; whatever cannot be read of it, at once or later, is an error that names the file."""
    arrow = arrow_package("reading Parquet files")
    try:
        with arrow.parquet.ParquetFile(path) as file:
            yield file
    except DiptychError:
        raise
    # The errors of Arrow are errors of Python as well, of many kinds.
    except (OSError, ValueError, TypeError, LookupError, NotImplementedError) as error:
        raise InvalidInputError(f"{path} is no readable Parquet file ({error}); get a fresh copy of it") from error
