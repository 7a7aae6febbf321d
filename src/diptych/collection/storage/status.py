"""How a collection is, and a note of it, so that asking again opens no table while nothing has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from diptych._version import __version__
from diptych.atomic_files import read_json, write_json
from diptych.collection.storage.layout import Layout


@dataclass(frozen=True)
class Status:
    """Counts, sizes and the retriever of a collection.

    ``stale`` is true while a new retriever is pending: searches still use the old one, and ``reencode`` finishes the
    change. ``unsearchable`` counts pictures without points, which could not be read. ``updated`` is when an item was
    last added or changed, ISO 8601 in UTC. ``failures`` are the paths that the last addition skipped, with reasons.
    ``point_bytes`` is what one point takes, 0 before there are any; ``is_codes`` says that points are binary codes;
    ``memory_bytes`` is what all points take when they are searched. ``recall`` is the share of the ten nearest that the
    search index finds, measured when it was built; None where everything is compared. ``texts_read`` counts the
    pictures whose text has been read, ``with_regions`` those whose regions are searched.
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
    recall: float | None = None
    texts_read: int = 0
    with_regions: int = 0


def remembered_status(folder: Path, look: Callable[[], Status]) -> Status:
    """Return the status of a collection, from the note of the last look if no file has changed since."""
    layout = Layout.read(folder)
    stamp = _stamp(layout)
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = read_json(layout.last_status)
        if note["stamp"] == stamp:
            # Folders may have been moved.
            return replace(Status(**note["status"]), folder=str(folder), root=str(layout.root_folder))
    status = look()
    # What changes meanwhile may be counted or not; and who may not write here is told all the same.
    if _stamp(layout) == stamp:
        with suppress(OSError):
            write_json(layout.last_status, {"stamp": stamp, "status": asdict(status)})
    return status


def _stamp(layout: Layout) -> str:
    """Return a digest of the names, sizes and times of all files that a status tells of."""
    found = [layout.folder / "collection.json", layout.last_run]
    for part in (layout.store, layout.index):
        found += [Path(base, name) for base, _, names in os.walk(part) for name in names]
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(found):
        with suppress(FileNotFoundError):
            about = path.stat()
            digest.update(f"\0{path.relative_to(layout.folder)}\0{about.st_size}\0{about.st_mtime_ns}".encode())
    return digest.hexdigest()
