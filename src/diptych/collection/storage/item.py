"""Items: one stored picture or text, and the record it is made from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from diptych.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a collection: a picture with what is known about it, or a text without a picture.

    ``path`` is relative to the collection's root when the file lies inside it, absolute otherwise, and None for an item
    without a picture. ``content_hash`` is the SHA-256 of the file. ``added_ns`` and ``updated_ns`` count nanoseconds
    since 1970; no two items were added at the same one.
    """

    id: str
    path: str | None
    content_hash: str | None
    size: int = 0
    mtime_ns: int = 0
    width: int = 0
    height: int = 0
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    caption_ids: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    added_ns: int = 0
    updated_ns: int = 0

    @property
    def added(self) -> str:
        """When the item was added, ISO 8601 in UTC."""
        return iso_time(self.added_ns)

    @property
    def updated(self) -> str:
        """When the item was last changed, ISO 8601 in UTC."""
        return iso_time(self.updated_ns)

    @property
    def modified(self) -> str:
        """When the file was last changed, ISO 8601 in UTC; empty without a file."""
        return iso_time(self.mtime_ns) if self.path is not None else ""


def iso_time(nanoseconds: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 in UTC.

    >>> iso_time(86_400 * 10**9)
    '1970-01-02T00:00:00+00:00'
    """
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat()


@dataclass(frozen=True)
class Record:
    """A picture file, or a text without one, with what is known about it.

    What is None is left as it is stored; an empty sequence or mapping erases it. Metadata are JSON values. A record
    without a path needs captions: it is a text to be found, not a picture. ``id`` names the item from outside; without
    it one is made up.

    >>> from diptych.collection import Record
    >>> Record("boats/1.jpg", captions=["a red boat"], labels=["boat"], metadata={"year": 2010}).labels
    ('boat',)
    """

    path: str | os.PathLike[str] | None = None
    captions: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        for name in ("captions", "labels"):
            object.__setattr__(self, name, _strings(getattr(self, name), name))
        if self.path is None and not self.captions:
            raise InvalidInputError("a record without a picture needs at least one caption, which is then its text")
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            raise InvalidInputError(f"the id of a record is a string that is not empty, got {self.id!r}")
        if self.id is not None and not is_storable(self.id):
            raise InvalidInputError(f"the id of a record must be valid Unicode, got {self.id!r}; rename it")
        if self.metadata is not None:
            object.__setattr__(self, "metadata", _plain(self.metadata))


def _strings(values: Any, name: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise InvalidInputError(f"{name} must be a sequence of strings, got one string; pass it in a list")
    strings = tuple(values)
    if not all(isinstance(value, str) and value.strip() and is_storable(value) for value in strings):
        raise InvalidInputError(f"{name} must be strings of valid Unicode that are not empty, got {strings!r}")
    return strings


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"metadata must be JSON values ({problem}); convert them first") from None
    if not is_storable(json.dumps(plain, ensure_ascii=False)):
        raise InvalidInputError("metadata must be valid Unicode; remove lone surrogates")
    if not isinstance(plain, dict):
        raise InvalidInputError("metadata must be a mapping from names to values")
    return plain


def is_storable(text: str) -> bool:
    """Say whether a text is valid Unicode; file names of another encoding are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
