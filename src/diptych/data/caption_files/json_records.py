"""Captions in JSON: an object of files, a list of records, or a record per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.columns import captions_in, file_column, record_of
from diptych.errors import InvalidInputError

_LIST_NAMES = ("images", "pictures", "data", "records", "items", "annotations")


def parse_json(path: Path, text: str) -> Any:
    """Return the content of a JSON file, or say in which line it is broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "it"
        raise InvalidInputError(f"{path}: {line} is not valid JSON ({error}); correct it") from error


def read_json(path: Path, content: Any) -> Iterator[CaptionRecord]:
    """Yield the records of an object of files, ``{file: caption, captions or record}``, or of a list of records."""
    if isinstance(content, list):
        return _read_list(content, f"{path}: entry")
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path} must hold an object or a list, got {type(content).__name__}")
    if file_column(list(content)) is not None:
        return _read_list([content], f"{path}: entry")
    for name in _LIST_NAMES:
        listed = content.get(name)
        if isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed):
            return _read_list(listed, f"{path}: {name} entry")
    return (described(value, f"{path}: {file!r}", file) for file, value in content.items())


def read_json_lines(path: Path, text: str) -> Iterator[CaptionRecord]:
    """Yield the record of every line."""
    # Not splitlines: JSON may hold the Unicode line separators that it also splits at.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}: line {number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{place} is not valid JSON ({error}); correct it") from error
        yield from _read_list([entry], place, numbered=False)


def described(value: Any, place: str, file: str) -> CaptionRecord:
    """Return what a caption, a list of captions or a record says about ``file``."""
    if isinstance(value, dict):
        return record_of(value, place, file=file)
    return CaptionRecord(file, tuple(captions_in(value, place)), place)


def _read_list(entries: Iterable[Any], where: str, *, numbered: bool = True) -> Iterator[CaptionRecord]:
    for number, entry in enumerate(entries, start=1):
        place = f"{where} {number}" if numbered else where
        if not isinstance(entry, dict):
            raise InvalidInputError(f'{place} must be an object such as {{"file": "1.jpg", "caption": "a boat"}}')
        yield record_of(entry, place)
