"""The state of a collection at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Status:
    """Counts, sizes and the retriever of a collection.

    ``stale`` is true while a new retriever is pending: searches still use the old one, and ``reencode`` finishes the
    change. ``unsearchable`` counts pictures without points, which could not be read when they were encoded.
    ``updated`` is when an item was last added or changed, ISO 8601 in UTC, None without items. ``failures`` are the
    paths that the last addition skipped, with reasons.

    ``point_bytes`` is what one point takes, on disk and in memory (8 for a code of 64 bits, 4 for each number of a
    vector), 0 before there are any; ``is_codes`` says that points are binary codes; ``memory_bytes`` is what the points
    of all pictures and captions take when they are searched.
    """

    folder: str
    root: str
    items: int
    pictures: int
    captions: int
    retriever: str
    fingerprint: str
    stale: bool
    pending: str | None
    pending_done: int
    unsearchable: int
    store_bytes: int
    index_bytes: int
    updated: str | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    point_bytes: int = 0
    is_codes: bool = False
    memory_bytes: int = 0
