"""What one record of a caption file says about a picture, and which of its names means what."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from diptych.data.text_files import first_named, normalised_name
from diptych.errors import InvalidInputError

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


@dataclass(frozen=True, slots=True)
class CaptionRecord:
    """A picture as a caption file names it, what is said there, empty captions too, and the row or key for messages."""

    file: str
    captions: tuple[str, ...]
    place: str
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


def file_column(names: Sequence[str]) -> str | None:
    """Return the name that holds the picture's file, or None."""
    return first_named(FILE_NAMES, names)


def caption_record_of(entry: Mapping[str, Any], place: str, *, file: str | None = None) -> CaptionRecord:
    """Return what an object with named values says; ``file`` is the picture when its name stands outside."""
    file_name, caption_names, label_names, others = _roles(tuple(entry), file is None)
    if file is None:
        if file_name is None:
            raise InvalidInputError(f"{place} names no picture; give it a {' or '.join(map(repr, FILE_NAMES[:4]))}")
        file = entry[file_name]
        if not isinstance(file, str) or not file.strip():
            raise InvalidInputError(f"{place} has no file name; write the picture's path there")
    captions = [caption for name in caption_names for caption in captions_in(entry[name], place)]
    labels = [label for name in label_names for label in _labels_in(entry[name], normalised_name(name), place)]
    metadata = {name: plain_value(entry[name]) for name in others if entry[name] not in (None, "")}
    return CaptionRecord(file, tuple(captions), place, tuple(labels), metadata)


# All rows of a table have the same names.
@lru_cache(maxsize=64)
def _roles(
    names: tuple[str, ...], holds_file: bool
) -> tuple[str | None, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return which of an object's names hold the file, captions, labels and metadata."""
    file = file_column(names) if holds_file else None
    others = [name for name in names if name != file]
    captions = tuple(name for name in others if _NUMBERED_CAPTION.fullmatch(normalised_name(name)))
    if (first := first_named(CAPTION_NAMES, others)) is not None:
        captions = (first, *captions)
    labels = tuple(name for name in others if normalised_name(name) in LABEL_NAMES)
    return file, captions, labels, tuple(name for name in others if name not in (*captions, *labels))


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


def _labels_in(value: Any, name: str, place: str) -> list[str]:
    if value in (None, ""):
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
