"""Text files of data sets and of users, in whatever encoding they come."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from diptych.errors import InvalidInputError

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a UTF-8 file, without line ends."""
    return [line.rstrip("\r") for line in _read_text(path).split("\n") if line.strip()]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not UTF-8 text; get a fresh copy of the file") from error
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}; get a fresh copy of the file") from error


def read_table(path: Path, columns: int) -> list[list[str]]:
    """Return the rows of a tab-separated file, each with exactly ``columns`` fields."""
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != columns:
            raise InvalidInputError(
                f"{path}: row {number} has {len(row)} tab-separated fields, expected {columns}; get a fresh copy"
            )
    return rows


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def written_cells(row: Iterable[Any]) -> list[Any]:
    """Return a row for a table of text: a spreadsheet takes none of its texts for a formula, by an apostrophe before.

    >>> written_cells(["=cmd|'/C calc'!A0", "a - b", -1])
    ["'=cmd|'/C calc'!A0", 'a - b', -1]
    >>> read_cells(written_cells(["=1", "'=1", "'tis"]))
    ['=1', "'=1", "'tis"]
    """
    return [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in row]


def read_cells(row: list[str]) -> list[str]:
    """Return the texts that :func:`written_cells` was given."""
    if not any(cell.startswith("'") for cell in row):
        return row
    return [cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell for cell in row]


class BadRow(NamedTuple):
    """A row that could not be taken apart, and why; ``place`` is its line, or its row in a file without lines."""

    place: int
    reason: str


def delimited_rows(
    lines: Iterable[str], delimiter: str, *, quotes: bool = True, **dialect: Any
) -> Iterator[tuple[int, list[str]] | BadRow]:
    """Yield line and cells of every row that is not empty; without ``quotes``, a quote is only a quote."""
    quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, **dialect)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadRow(reader.line_num, str(error))
            continue
        if row:
            yield reader.line_num, read_cells(row) if quotes else row


def normalised_name(name: str) -> str:
    """Return a column's name as it is compared: lower case, one underscore between words."""
    return re.sub(r"[\s_-]+", "_", name.strip()).lower()


def first_named(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    """Return which of a file's ``names`` means the earliest of those ``wanted``, or None."""
    known = {normalised_name(name): name for name in reversed(names)}
    return next((known[name] for name in wanted if name in known), None)


def parse_json(path: Path, text: str, *, line: int = 1, advice: str = "correct it") -> Any:
    """Return JSON that starts at ``line`` of a file, or say in which line it is broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        place = line + getattr(error, "lineno", 1) - 1
        raise InvalidInputError(f"{path}: line {place} is not valid JSON ({error}); {advice}") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Return a JSON file that holds one object."""
    content = parse_json(path, _read_text(path), advice="get a fresh copy of the file")
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path} must hold one JSON object, got a {type(content).__name__}")
    return content


def decode_file(path: Path) -> tuple[str, str]:
    """Return the text of a file and a note about its encoding, which is empty for Unicode.

    A byte order mark decides; without one the text is UTF-8, then UTF-16 if its zero bytes say so, then Windows-1252
    and Latin-1, which read anything and so are only guessed.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error.strerror}; check the path and its permissions"
        ) from error
    encoding = _unicode_encoding(content)
    try:
        return content.decode(encoding), ""
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise InvalidInputError(
                f"{path} is broken {encoding} text at byte {error.start}; save it as UTF-8"
            ) from error
    return _decode_western(content, path)


def _unicode_encoding(content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    start = content[:4096]
    # Western text in UTF-16 has a zero in every other byte; which one tells the byte order.
    for offset, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(start) >= 2 and start[offset::2].count(0) > len(start) // 3:
            return encoding
    return "utf-8"


def _decode_western(content: bytes, path: Path) -> tuple[str, str]:
    try:
        text, name = content.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        text, name = content.decode("latin-1"), "Latin-1"
    return text, f"{path.name} is not UTF-8 and was read as {name}; save it as UTF-8 if accents look wrong"
