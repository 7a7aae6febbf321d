"""Following the store: the latest changes in memory, everything before them in files that all processes share."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import IntArray
from diptych.atomic_files import (
    damage_in_folder,
    damage_of,
    damage_of_note,
    file_checksum,
    read_json,
    seal_folder,
    sync_to_disk,
    write_json,
)
from diptych.collection.browse.live_items import LiveItems, Part
from diptych.collection.browse.segment import FileSegment, MemorySegment, SegmentWriter
from diptych.collection.search.approximate_index import damage_of_index
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.retriever_protocol import PointKind
from diptych.collection.storage.rows import items_of_rows
from diptych.collection.storage.store import Store
from diptych.errors import CollectionError

_FORMAT = 2


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
            document = read_json(self._current)
            if document["format"] != _FORMAT:
                return Segments()
            names = [entry["name"] for entry in document["segments"]]
            self._open = {name: self._open.get(name) or FileSegment(self.folder / name) for name in names}
            for entry, known in zip(document["segments"], document["dead"], strict=True):
                if damage_of(self.folder / entry["dead"], known) is not None:
                    return Segments()
            dead = tuple(np.load(self.folder / entry["dead"], allow_pickle=False) for entry in document["segments"])
            return Segments(tuple(self._open.values()), dead, document["updated_ns"], document["removed_ns"])
        except (OSError, ValueError, KeyError, TypeError, CollectionError):
            return Segments()

    def forget(self) -> None:
        """Let no segment be valid; they are made anew from the store."""
        try:
            make_folder(self.folder)
            # Not deleted: a check says of what is missing that somebody else deleted it.
            self.use(Segments())
        except OSError:
            self._current.unlink(missing_ok=True)

    def damaged(self, *, all_bytes: bool = True) -> dict[str, str]:
        """Return what is wrong with the valid segments and their points, by name; what is made anew is not."""
        if not self._current.exists():
            return {}
        if (wrong := damage_of_note(self._current)) is not None:
            return {self._current.name: wrong}
        document, found = read_json(self._current), {}
        for entry, known in zip(document["segments"], document.get("dead", ()), strict=False):
            if (wrong := damage_of(self.folder / entry["dead"], known, all_bytes=all_bytes)) is not None:
                found[entry["dead"]] = wrong
            segment = self.folder / entry["name"]
            for folder in (segment, *segment.glob("[!.]*/"), *segment.glob("[!.]*/[!.]*/")):
                wrongs = damage_in_folder(folder, all_bytes=all_bytes) | damage_of_index(folder, all_bytes=all_bytes)
                found |= {f"{folder.relative_to(self.folder)}/{name}": what for name, what in wrongs.items()}
        return found

    def begin(self) -> SegmentWriter:
        """Begin a further segment, which is not valid yet."""
        return SegmentWriter(self.folder / f"segment-{uuid.uuid4().hex[:12]}")

    def finish(self, writer: SegmentWriter) -> FileSegment:
        """Return a segment that was written, still not valid."""
        writer.finish()
        seal_folder(writer.folder)
        self._open[writer.folder.name] = segment = FileSegment(writer.folder)
        return segment

    def write_rows(self, batches: Iterable[Any]) -> FileSegment:
        """Write a further segment of rows of items, which come in the order of addition."""
        writer = self.begin()
        try:
            for rows in batches:
                writer.add(rows)
            return self.finish(writer)
        except BaseException:
            self.discard(writer)
            raise

    def discard(self, writer: SegmentWriter) -> None:
        """Delete a segment that is not valid."""
        if writer.folder.name not in self._named():
            shutil.rmtree(writer.folder, ignore_errors=True)

    def use(self, segments: Segments) -> None:
        """Make segments the valid ones."""
        entries, checksums = [], []
        for file, dead in zip(segments.files, segments.dead, strict=True):
            name = f"dead-{uuid.uuid4().hex[:12]}.npy"
            np.save(self.folder / name, dead)
            entries.append({"name": file.folder.name, "dead": name})
            checksums.append(file_checksum(self.folder / name))
            sync_to_disk(self.folder / name)
        before = self._named()
        times = {"updated_ns": segments.updated_ns, "removed_ns": segments.removed_ns}
        write_json(self._current, {"format": _FORMAT, "segments": entries, "dead": checksums, **times})
        # Readers that have just looked at the earlier ones may still open them.
        self._delete_all_but(before | self._named())

    def delete_unused(self, fingerprints: Iterable[str]) -> None:
        """Delete what is not valid, and the points of other retrievers than those with these fingerprints."""
        named, kept = self._named(), tuple(f"-{fingerprint}" for fingerprint in fingerprints)
        self._delete_all_but(named)
        for name in named:
            for path in (self.folder / name).glob("*/"):
                if not path.name.endswith(kept):
                    shutil.rmtree(path, ignore_errors=True)

    def forget_points(self, fingerprint: str, kind: PointKind | None = None) -> None:
        """Delete the points of a retriever in all segments; they are made from the store when they are asked for."""
        for folder in self.folder.glob(f"*/{kind or '*'}-{fingerprint}"):
            # In one step: what is half there would be taken for all.
            gone = folder.with_name(f".{uuid.uuid4().hex}")
            with suppress(OSError):
                folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _named(self) -> set[str]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            entries = read_json(self._current)["segments"]
            return {name for entry in entries for name in (entry["name"], entry["dead"])}
        return set()

    def _delete_all_but(self, names: set[str]) -> None:
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path.name in names or path.name in ("current.json", "fold.lock", "outputs.lock"):
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


def make_folder(folder: Path) -> None:
    """Make the folder of the segments, if need be, so that it is there after a power cut as what it holds is."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_to_disk(folder.parent)


@contextmanager
def fold_lock(folder: Path, name: str = "fold.lock") -> Iterator[bool]:
    """Be the one who writes segments (or what else ``name`` is of), or say that another one is, or that nobody can."""
    filelock = search_package("filelock")
    try:
        make_folder(folder)
        held = filelock.FileLock(folder / name, mode=0o600, timeout=0, thread_local=False).acquire()
    except (filelock.Timeout, OSError):
        yield False
        return
    with held:
        yield True


# With so many changes in memory they are put into a file beside the searches, and with so many at once before the next.
FOLD_FROM = 2_000
_FOLD_FIRST = 20_000
_ROWS_AT_ONCE = 1 << 14


class LiveSegments:
    """Brings the items up to date: changes are found by their times, removals by the notes that precede them.

    Times of changes only grow, because there is one writer at a time. A removal is noted before it is made, and an item
    that was removed never returns with its time of addition: whoever reads the note looks whether it is there.
    """

    def __init__(self, store: Store, files: SegmentFiles) -> None:
        self._store = store
        self._files = files
        self._stamp: tuple[int, int] | None = None
        self._folded: tuple[Part, ...] = ()
        self._recent: dict[int, Item] = {}
        self._updated_ns = self._removed_ns = -1
        # Noted removals of items that were still there.
        self._unsettled: dict[int, int] = {}
        self._items = LiveItems()

    @property
    def n_recent(self) -> int:
        """How many changes are in no file yet."""
        return len(self._recent)

    @property
    def newest_ns(self) -> int:
        """The time of the last change or removal."""
        return max(self._updated_ns, self._removed_ns)

    def refresh(self) -> LiveItems:
        """Return the items as they are in the store now; the same object where nothing has changed."""
        has_changed = self._load()
        changed = self._store.changed_items(self._updated_ns, _FOLD_FIRST)
        if changed is None and self._fold_store():
            has_changed = self._load()
            changed = self._store.changed_items(self._updated_ns, _FOLD_FIRST)
        if changed is None:
            changed = [item for rows in self._store.all_rows() for item in items_of_rows(rows.to_pylist())]
        removed = self._removals()
        if has_changed or changed or removed:
            self._take_in(changed, removed)
        return self._items

    def _load(self) -> bool:
        """Take over segments that another thread or process has made."""
        stamp = self._files.stamp()
        if stamp == self._stamp:
            return False
        segments = self._files.read()
        while self._files.stamp() != stamp:
            stamp = self._files.stamp()
            segments = self._files.read()
        is_first = self._stamp is None
        self._stamp = stamp
        pairs = zip(segments.files, segments.dead, strict=True)
        self._folded = tuple(Part(file).without(dead) for file, dead in pairs)
        self._recent, self._unsettled = {}, {}
        self._updated_ns, self._removed_ns = segments.updated_ns, segments.removed_ns
        return not is_first or bool(segments.files)

    def _removals(self) -> list[int]:
        """Return the items that are gone, by their times of addition."""
        noted = self._store.removed_orders(self._removed_ns)
        self._unsettled |= noted
        self._removed_ns = max([self._removed_ns, *noted.values()])
        there = self._store.present_orders(list(self._unsettled))
        gone = [order for order in self._unsettled if order not in there]
        self._unsettled = {order: time for order, time in self._unsettled.items() if order in there}
        return gone

    def _take_in(self, changed: Iterable[Item], removed: Iterable[int]) -> None:
        gone = set(removed)
        for item in changed:
            self._updated_ns = max(self._updated_ns, item.updated_ns)
            self._recent[item.added_ns] = item
        for order in gone:
            self._recent.pop(order, None)
        outdated = np.array([*self._recent, *gone], dtype=np.int64)
        self._folded = tuple(part.without(outdated) for part in self._folded)
        newest = (Part(MemorySegment(self._recent.values())),) if self._recent else ()
        self._items = LiveItems((*self._folded, *newest), self._updated_ns)

    def fold(self, prepare: Callable[[FileSegment], None], *, everything: bool = False) -> Callable[[], None] | None:
        """Put the latest changes into a file, together with small segments; call what is returned to use it.

        ``prepare`` makes whatever belongs to a segment before it is used. None is returned when there is nothing to do
        or somebody else does it.
        """
        folded, recent, stamp = self._folded, list(self._recent.values()), self._stamp
        updated_ns = self._updated_ns
        removed_ns = min([self._removed_ns, *(time - 1 for time in self._unsettled.values())])
        joined = len(folded) if everything else segments_to_join([len(part) for part in folded], len(recent))
        if not recent and (joined < 2 or not everything):
            return None

        def work() -> None:
            with fold_lock(self._files.folder) as is_ours:
                if not is_ours or self._files.stamp() != stamp:
                    return
                kept, old = folded[: len(folded) - joined], folded[len(folded) - joined :]
                newest = (Part(MemorySegment(recent)),) if recent else ()
                new = self._files.write_rows(_rows_in_order((*old, *newest)))
                prepare(new)
                files = tuple(part.segment for part in kept if isinstance(part.segment, FileSegment))
                dead = tuple(
                    np.zeros(0, dtype=np.int64) if part.live is None else part.segment.orders[~part.live]
                    for part in kept
                )
                no_dead = np.zeros(0, dtype=np.int64)
                self._files.use(Segments((*files, new), (*dead, no_dead), updated_ns, removed_ns))

        return work

    def _fold_store(self) -> bool:
        """Put everything into one file, straight from the store; say whether there are new segments to load."""
        with fold_lock(self._files.folder) as is_ours:
            if not is_ours or self._files.stamp() != self._stamp:
                return self._files.stamp() != self._stamp
            removed_ns = max([-1, *self._store.removed_orders(-1).values()])
            latest = [-1]
            try:
                new = self._files.write_rows(_noting_latest(self._store.all_rows(), latest))
                self._files.use(Segments((new,), (np.zeros(0, dtype=np.int64),), latest[0], removed_ns))
            except OSError:
                return False
        return True


def _noting_latest(batches: Iterable[Any], latest: list[int]) -> Iterator[Any]:
    for rows in batches:
        if len(rows):
            latest[0] = max(latest[0], int(rows["updated_ns"].to_numpy().max()))
        yield rows


def _rows_in_order(parts: Sequence[Part]) -> Iterator[Any]:
    """Yield the rows of the live items of some parts in the order of addition, a batch at a time."""
    places = [np.arange(len(part.segment)) if part.live is None else np.flatnonzero(part.live) for part in parts]
    owners = np.repeat(np.arange(len(parts)), [len(each) for each in places])
    inner = np.concatenate(places)
    orders = np.concatenate([part.segment.orders[each] for part, each in zip(parts, places, strict=True)])
    in_order = np.argsort(orders, kind="stable")
    pa = search_package("pyarrow")
    for start in range(0, len(in_order), _ROWS_AT_ONCE):
        chosen = in_order[start : start + _ROWS_AT_ONCE]
        taken = [
            parts[number].segment.rows(np.sort(inner[chosen[owners[chosen] == number]]))
            for number in np.unique(owners[chosen]).tolist()
        ]
        if len(taken) == 1:
            yield taken[0]
        else:
            yield pa.Table.from_batches(taken).sort_by("added_ns").combine_chunks().to_batches()[0]
