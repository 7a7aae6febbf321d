"""Reading the small text files that data sets come with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from diptych.errors import InvalidInputError


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a UTF-8 file, without line ends."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not UTF-8 text; get a fresh copy of the file") from error
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def read_table(path: Path, columns: int) -> list[list[str]]:
    """Return the rows of a tab-separated file, each with exactly ``columns`` fields."""
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != columns:
            raise InvalidInputError(
                f"{path}: row {number} has {len(row)} tab-separated fields, expected {columns}; get a fresh copy"
            )
    return rows


def read_json_object(path: Path) -> dict[str, Any]:
    """Return a JSON file that holds one object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInputError(f"{path} is not valid JSON; get a fresh copy of the file") from error
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path} must hold one JSON object, got a {type(content).__name__}")
    return content
