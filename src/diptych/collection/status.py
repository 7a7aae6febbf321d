"""The state of a collection at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Status:
    """Counts, sizes and the retriever of a collection.

    ``stale`` is true while a new retriever is pending: searches still use the old one, and ``reencode`` finishes the
    change. ``unsearchable`` counts pictures without points, which could not be read when they were encoded.
    ``failures`` are the paths that the last addition skipped, with reasons.
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
    failures: Mapping[str, str] = field(default_factory=dict)
