"""The segments of a collection on disk: which are valid, up to which change, and how they are made and joined."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import IntArray
from diptych.atomic_files import make_durable
from diptych.collection.browse.segment import FileSegment, write_segment
from diptych.collection.storage.layout import search_package, write_json
from diptych.errors import CollectionError

_FORMAT = 1


@dataclass(frozen=True)
class Segments:
    """Segments that hold every change up to ``updated_ns`` and every removal up to ``removed_ns``.

    ``dead`` names, by their times of addition, items that a segment still holds although they were removed or changed.
    """

    files: tuple[FileSegment, ...] = ()
    dead: tuple[IntArray, ...] = ()
    updated_ns: int = -1
    removed_ns: int = -1


class SegmentFiles:
    """The folder of the segments; ``current.json`` says which are valid, and is replaced in one step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current = folder / "current.json"
        self._open: dict[str, FileSegment] = {}

    def stamp(self) -> tuple[int, int]:
        """Return what changes whenever the valid segments do."""
        try:
            status = self._current.stat()
        except OSError:
            return 0, 0
        return status.st_ino, status.st_mtime_ns

    def read(self) -> Segments:
        """Return the valid segments; none where there are none, or they cannot be read: they are made anew."""
        try:
            document = json.loads(self._current.read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                return Segments()
            names = [entry["name"] for entry in document["segments"]]
            self._open = {name: self._open.get(name) or FileSegment(self.folder / name) for name in names}
            dead = tuple(np.load(self.folder / entry["dead"], allow_pickle=False) for entry in document["segments"])
            return Segments(tuple(self._open.values()), dead, document["updated_ns"], document["removed_ns"])
        except (OSError, ValueError, KeyError, TypeError, CollectionError):
            return Segments()

    def write_rows(self, batches: Iterable[Any]) -> FileSegment:
        """Write a further segment, which is not valid yet; rows of items come in the order of addition."""
        folder = self.folder / f"segment-{uuid.uuid4().hex[:12]}"
        try:
            write_segment(folder, batches)
            make_durable(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._open[folder.name] = segment = FileSegment(folder)
        return segment

    def use(self, segments: Segments) -> None:
        """Make segments the valid ones."""
        entries = []
        for file, dead in zip(segments.files, segments.dead, strict=True):
            name = f"dead-{uuid.uuid4().hex[:12]}.npy"
            np.save(self.folder / name, dead)
            entries.append({"name": file.folder.name, "dead": name})
        before = self._named()
        times = {"updated_ns": segments.updated_ns, "removed_ns": segments.removed_ns}
        write_json(self._current, {"format": _FORMAT, "segments": entries, **times})
        # Readers that have just looked at the former ones may still open them.
        self._delete_all_but(before | self._named())

    def delete_unused(self, fingerprints: Iterable[str]) -> None:
        """Delete what is not valid, and the points of other retrievers than those with these fingerprints."""
        named, kept = self._named(), tuple(f"-{fingerprint}" for fingerprint in fingerprints)
        self._delete_all_but(named)
        for name in named:
            for path in (self.folder / name).glob("*/"):
                if not path.name.endswith(kept):
                    shutil.rmtree(path, ignore_errors=True)

    def _named(self) -> set[str]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            entries = json.loads(self._current.read_text(encoding="utf-8"))["segments"]
            return {name for entry in entries for name in (entry["name"], entry["dead"])}
        return set()

    def _delete_all_but(self, names: set[str]) -> None:
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path.name in names or path.name in ("current.json", "fold.lock"):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def segments_to_join(sizes: Sequence[int], n_new: int) -> int:
    """Return how many of the last segments to join with new items, so that sizes grow by a factor of four or more.

    >>> segments_to_join([100_000, 4_000, 1_100], 1_000)
    2
    """
    joined, total = 0, n_new
    for size in reversed(sizes):
        if size >= 4 * total:
            break
        joined, total = joined + 1, total + size
    return joined


@contextmanager
def fold_lock(folder: Path) -> Iterator[bool]:
    """Be the one who writes segments, or say that another one is, or that the folder cannot be written."""
    filelock = search_package("filelock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = filelock.FileLock(folder / "fold.lock", timeout=0, thread_local=False).acquire()
    except (filelock.Timeout, OSError):
        yield False
        return
    with held:
        yield True
