"""One stored picture or text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


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

    >>> from diptych.collection.item import iso_time
    >>> iso_time(86_400 * 10**9)
    '1970-01-02T00:00:00+00:00'
    """
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat()
