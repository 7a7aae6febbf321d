"""Reading the small text files that data sets come with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from diptych.errors import InvalidInputError


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


def read_json_object(path: Path) -> dict[str, Any]:
    """Return a JSON file that holds one object."""
    try:
        content = json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"{path} is not valid JSON; get a fresh copy of the file") from error
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path} must hold one JSON object, got a {type(content).__name__}")
    return content
