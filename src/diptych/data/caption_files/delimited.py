"""Tables of captions: fields with commas, tabs, semicolons or bars between them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.columns import CAPTION_NAMES, FILE_NAMES, file_column, record_of
from diptych.data.picture_files import picture_suffixes
from diptych.errors import InvalidInputError

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def read_delimited(path: Path, text: str, delimiters: str = "\t,;|") -> Iterator[CaptionRecord]:
    """Yield a record per row of a table.

    The first row names the columns; without names, a table of two columns is read as picture and caption. Columns other
    than file, captions and labels are metadata, and become numbers where every value of the column is one.
    """
    delimiter, header = _layout(path, text, delimiters)
    rows = _rows(path, text, delimiter)
    names = next(rows)[1] if header is None else header
    records = [_record(path, line, names, row) for line, row in rows if any(cell.strip() for cell in row)]
    converters = _converters(records)
    for record in records:
        for name, value in record.metadata.items():
            record.metadata[name] = converters[name](value)
        yield record


def _layout(path: Path, text: str, delimiters: str) -> tuple[str, Sequence[str] | None]:
    """Return the delimiter, and the columns where the table does not name them itself."""
    first = next((line for line in io.StringIO(text) if line.strip()), "").strip("\r\n")
    split = {delimiter: _cells(path, first, delimiter) for delimiter in delimiters}
    for delimiter, cells in split.items():
        if len(cells) > 1 and file_column(cells) is not None:
            return delimiter, None
    for delimiter, cells in split.items():
        if len(cells) == 2 and any(map(_is_picture, cells)):
            return delimiter, ("file", "caption") if _is_picture(cells[0]) else ("caption", "file")
    raise InvalidInputError(
        f"{path}: line 1 names no columns; start the table with a row such as {FILE_NAMES[0]},{CAPTION_NAMES[0]}"
    )


def _cells(path: Path, line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error as error:
        raise _no_row(path, f"{error}, line 1") from error


def _is_picture(cell: str) -> bool:
    return PurePosixPath(cell.strip()).suffix.lower() in picture_suffixes()


def _rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from list(_read(text, delimiter, csv.QUOTE_MINIMAL))
    except csv.Error as error:
        if delimiter != "\t":
            raise _no_row(path, str(error)) from error
        # Tables with tabs are often written without any quoting, so that a quote is only a quote.
        yield from _unquoted_rows(path, text, delimiter)


def _unquoted_rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from list(_read(text, delimiter, csv.QUOTE_NONE))
    except csv.Error as error:
        raise _no_row(path, str(error)) from error


def _no_row(path: Path, problem: str) -> InvalidInputError:
    reason, _, line = problem.rpartition(", line ")
    return InvalidInputError(
        f"{path}: line {line} is no valid row ({reason}); save the table as text, close every quote, and double the "
        "quotes inside a quoted field"
    )


def _read(text: str, delimiter: str, quoting: Any) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True, skipinitialspace=True
    )
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise csv.Error(f"{error}, line {reader.line_num}") from error


def _record(path: Path, line: int, names: Sequence[str], row: Sequence[str]) -> CaptionRecord:
    if len(row) != len(names):
        raise InvalidInputError(
            f"{path}: line {line} has {len(row)} fields, but there are {len(names)} columns; put quotes around a field "
            "that holds the separator"
        )
    return record_of(dict(zip(names, row, strict=True)), f"{path}: line {line}")


def _converters(records: Iterable[CaptionRecord]) -> dict[str, Callable[[str], Any]]:
    """Return for each column of metadata what turns its values into integers, numbers or text."""
    converters: dict[str, Callable[[str], Any]] = {}
    for record in records:
        for name, value in record.metadata.items():
            narrowest = converters.get(name, int)
            if narrowest is int and not _INTEGER.fullmatch(value):
                narrowest = float
            if narrowest is float and not _is_number(value):
                narrowest = str
            converters[name] = narrowest
    return converters


def _is_number(value: str) -> bool:
    # Leading zeros belong to codes, such as 007, and not to numbers.
    return bool(_DECIMAL.fullmatch(value)) and not re.match(r"-?0\d", value)
