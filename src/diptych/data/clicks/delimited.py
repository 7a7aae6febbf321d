"""Tables of clicks with commas or tabs between the columns."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from diptych.data.clicks.columns import ClickColumns, find_columns
from diptych.data.clicks.rows import BadRow, TriadRow
from diptych.errors import InvalidInputError

PLAIN_COLUMNS = ("query", "image", "clicks")
_LOOKED_AT = 200


def open_text(path: Path) -> IO[str]:
    """Open a text file, or one packed by gzip; bytes that are not UTF-8 become the replacement character."""
    if path.suffix.lower() == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline=""))
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def read_named_table(path: Path, delimiter: str) -> Iterator[TriadRow | BadRow]:
    """Yield the rows of a table whose first row names the columns; quotes may stand around a field."""
    with open_text(path) as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        names = next(reader, [])
        columns = find_columns(names, str(path))
        if columns is None:
            raise InvalidInputError(
                f"{path}: line 1 must name the columns, such as query{delimiter}image{delimiter}clicks; it holds "
                f"{delimiter.join(names)[:80]!r}"
            )
        yield from _triads(reader, names, columns)


def read_plain_table(path: Path, names: Sequence[str] | None = None) -> Iterator[TriadRow | BadRow]:
    """Yield the rows of a table without names and quotes, as Clickture comes: query, image key, clicks.

    Image keys hold no spaces, so the first rows tell whether queries or keys come first, unless ``names`` says it.
    """
    names = plain_columns(path) if names is None else names
    columns = find_columns(names, str(path))
    if columns is None:
        raise InvalidInputError(f"columns must name a query and an image, got {', '.join(names)}")
    with open_text(path) as stream:
        yield from _triads(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE), names, columns)


def plain_columns(path: Path) -> tuple[str, ...]:
    """Return the order of the columns of a table without names, as its first rows show it."""
    with open_text(path) as stream:
        rows = [line.rstrip("\r\n").split("\t") for line in islice(stream, _LOOKED_AT)]
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


def _triads(reader: Any, names: Sequence[str], columns: ClickColumns) -> Iterator[TriadRow | BadRow]:
    place_of = {name: place for place, name in enumerate(names)}
    query, image = place_of[columns.query], place_of[columns.image]
    clicks = None if columns.clicks is None else place_of[columns.clicks]
    time = None if columns.time is None else place_of[columns.time]
    width = len(names)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadRow(reader.line_num, str(error))
            continue
        if len(row) == width:
            yield TriadRow(
                reader.line_num,
                row[query],
                row[image],
                1 if clicks is None else row[clicks],
                None if time is None else row[time],
            )
        elif row:
            yield BadRow(reader.line_num, f"it has {len(row)} fields, but there are {width} columns")
