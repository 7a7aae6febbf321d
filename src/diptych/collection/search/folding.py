"""Following the store: the latest changes in memory, everything before them in files that all processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from diptych.collection.browse.live_items import LiveItems, Part
from diptych.collection.browse.segment import FileSegment, MemorySegment
from diptych.collection.browse.segment_files import SegmentFiles, Segments, fold_lock, segments_to_join
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.store import Store, items_of_rows

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
