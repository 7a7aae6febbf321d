"""What one record of a caption file says about a picture, and which of its names means what."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from diptych.data.text_files import first_named, normalised_name
from diptych.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class CaptionRecord:
    """A picture as a caption file names it, what is said about it, and where.

    ``place`` is the row or key, for messages. Captions are as written: empty ones are still among them.
    """

    file: str
    captions: tuple[str, ...]
    place: str
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


# In order of preference: where a file has two of one kind, the first is meant and the other is metadata.
FILE_NAMES = (
    "file",
    "file_name",
    "filename",
    "path",
    "file_path",
    "filepath",
    "image",
    "image_name",
    "image_path",
    "image_file",
    "picture",
    "photo",
)

CAPTION_NAMES = ("caption", "captions", "text", "texts", "sentence", "sentences", "description", "comment", "raw")
ONE_LABEL_NAMES = ("label", "category", "class")
LABEL_NAMES = (*ONE_LABEL_NAMES, "labels", "categories", "classes", "tags", "keywords")
_NUMBERED_CAPTION = re.compile(r"(caption|text|sentence)_?\d+")


def file_column(names: Sequence[str]) -> str | None:
    """Return the name that holds the picture's file, or None."""
    return first_named(FILE_NAMES, names)


def caption_record_of(entry: Mapping[str, Any], place: str, *, file: str | None = None) -> CaptionRecord:
    """Return what an object with named values says; ``file`` is the picture when its name stands outside.

    Lists are taken apart; a cell may hold several labels with semicolons or bars between them, or a JSON list.
    """
    roles = _roles(tuple(entry), file is None)
    if file is None:
        if roles.file is None:
            raise InvalidInputError(f"{place} names no picture; give it a {' or '.join(map(repr, FILE_NAMES[:4]))}")
        file = _file_name(entry[roles.file], place)
    captions = [caption for name in roles.captions for caption in captions_in(entry[name], place)]
    labels = [label for name in roles.labels for label in _labels_in(entry[name], normalised_name(name), place)]
    metadata = {name: plain_value(entry[name]) for name in roles.metadata if not _is_nothing(entry[name])}
    return CaptionRecord(file, tuple(captions), place, tuple(labels), metadata)


class _Roles(NamedTuple):
    """Which of an object's names hold what."""

    file: str | None
    captions: tuple[str, ...]
    labels: tuple[str, ...]
    metadata: tuple[str, ...]


# All rows of a table have the same names.
@lru_cache(maxsize=64)
def _roles(names: tuple[str, ...], holds_file: bool) -> _Roles:
    file = file_column(names) if holds_file else None
    others = [name for name in names if name != file]
    captions = _caption_names(others)
    labels = tuple(name for name in others if normalised_name(name) in LABEL_NAMES)
    return _Roles(file, captions, labels, tuple(name for name in others if name not in (*captions, *labels)))


def captions_in(value: Any, place: str) -> list[str]:
    """Return the captions of a value: text, a list of texts, or a list of objects that hold one each."""
    if value is None:
        return [""]
    if isinstance(value, str):
        listed = _listed(value)
        return [value] if listed is None else listed or [""]
    if isinstance(value, list):
        return [caption for part in value for caption in captions_in(part, place)]
    if isinstance(value, dict):
        for name in ("raw", "caption", "text", "sentence"):
            if isinstance(value.get(name), str):
                return [value[name]]
    raise InvalidInputError(f"{place}: a caption must be text, got {json.dumps(value)[:60]}; write it in quotes")


def plain_value(value: Any) -> str | int | float | bool:
    """Return a plain value as it is, and a list or object as JSON text."""
    return value if isinstance(value, str | int | float | bool) else json.dumps(value, ensure_ascii=False)


def _is_nothing(value: Any) -> bool:
    return value is None or value == ""


def _caption_names(names: Sequence[str]) -> tuple[str, ...]:
    numbered = tuple(name for name in names if _NUMBERED_CAPTION.fullmatch(normalised_name(name)))
    first = first_named(CAPTION_NAMES, names)
    return numbered if first is None else (first, *numbered)


def _file_name(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{place} has no file name; write the picture's path there")
    return value


def _labels_in(value: Any, name: str, place: str) -> list[str]:
    if _is_nothing(value):
        return []
    if isinstance(value, list):
        return [label for part in value for label in _labels_in(part, name, place)]
    if isinstance(value, dict):
        inner = value.get("name", value.get("label"))
        if inner is None:
            raise InvalidInputError(f"{place}: a label must be a word or a number, got {json.dumps(value)[:60]}")
        return _labels_in(inner, name, place)
    text = str(value)
    listed = _listed(text)
    if listed is not None:
        return [label.strip() for label in listed if label.strip()]
    marks = ";|" if name in ONE_LABEL_NAMES or ";" in text or "|" in text else ","
    return [label.strip() for label in re.split(f"[{marks}]", text) if label.strip()]


def _listed(text: str) -> list[str] | None:
    """Return the strings of a JSON list written in a cell, or None when the text is no such list."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        listed = json.loads(text)
    except ValueError:
        return None
    return listed if all(isinstance(part, str) for part in listed) else None
