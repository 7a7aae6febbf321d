"""What a collection knows at this moment: its items, its points, and the changes since they were put into files."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from diptych.arrays import AnyArray
from diptych.atomic_files import Durability, checked_durability
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.browse.segment import FileSegment
from diptych.collection.search.folding import FOLD_FROM, LiveSegments, SegmentFiles, fold_lock
from diptych.collection.search.retriever_state import RetrieverState, lacking_points
from diptych.collection.search.snapshot import SearchSnapshot
from diptych.collection.storage.change_journal import ChangeJournal
from diptych.collection.storage.clear_errors import (
    is_nearly_full,
    is_no_room,
    keep_reserve,
    missing_bytes,
    spend_reserve,
)
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import Layout, RetrieverNames, Root, stamp_of_layout, stored_root
from diptych.collection.storage.ledger import saved_unit
from diptych.collection.storage.place import is_awaited, write_lock
from diptych.collection.storage.retriever_protocol import SIDES, PointKind, RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import check_same_points, delete_saved
from diptych.collection.storage.store import Store
from diptych.collection.trusted_root import check_root, is_trusted_root, trust_root
from diptych.errors import CollectionBusyError, CollectionError, DiptychError, InvalidInputError, NoRoomError

Found = TypeVar("Found")

LoadRetriever = Callable[[Path], RetrieverProtocol]

_FEWEST_INDEXED = 1000
_FOLD_PAUSE_SECONDS = 60.0
_log = logging.getLogger("diptych.collection")


class LiveState:
    """The items and the points of a collection, brought up to date before each use: others may write."""

    is_past = False

    def __init__(
        self,
        folder: Path,
        load_retriever: LoadRetriever,
        write_wait: float = 0.0,
        durability: Durability | None = None,
        root: Path | None = None,
    ) -> None:
        self.folder = folder
        self._named_root = root
        self._durability = checked_durability(durability)
        self._write_wait = write_wait
        self._load_retriever = load_retriever
        self._lock = threading.RLock()
        self._working: dict[object, threading.Thread] = {}
        self._fold_again = 0.0
        self._read(folder)

    def _read(self, folder: Path) -> None:
        """Begin with what a folder holds."""
        self.layout = self._in_force(Layout.read(folder))
        self.store, index = self._open_tables()
        self.root = self._root()
        self._layout_path = str(folder / "collection.json")
        self._lock_path = folder / "write.lock"
        self._versions_path = str(self.store.version_folder())
        self._layout_stamp = self._stamp_of_layout()
        self.segment_files = SegmentFiles(index)
        ledger = self.store.tables.ledger
        if ledger is not None:
            ledger.durability = self._durability
        if ledger is not None and ledger.has_restarted():
            # Whoever cannot write here, or finds another one writing, leaves it to that one.
            with suppress(CollectionBusyError, OSError), self.lock():
                self._begin_writing()
        self._segments = LiveSegments(self.store, self.segment_files)
        self._items = LiveItems()
        self._version = -1
        self._version_stamp = -1
        # What is loaded of each stored retriever, by fingerprint.
        self._states: dict[str, RetrieverState] = {}

    def _root(self) -> Root:
        """Return the folder of pictures: the one that was named, or the recorded one, which may not be trusted."""
        if self._named_root is not None:
            check_root(self.folder, self._named_root)
            return Root(self._named_root)
        recorded = self.layout.root_folder
        return Root(recorded, None if is_trusted_root(self.folder, recorded) else self.folder)

    def keep_root(self) -> None:
        """Record the root that was named and trust it from now on, where both can be written now."""
        with suppress(CollectionBusyError, OSError):
            if self.layout.root_folder != self.root.folder:
                with self.writing():
                    self.write_layout(replace(self.layout, root=stored_root(self.root.folder, self.folder)), None)
            trust_root(self.folder, self.root.folder)

    def _open_tables(self) -> tuple[Store, Path]:
        """Return the tables, and the folder of the search files."""
        return Store(self.layout.store), self.layout.index

    def _in_force(self, layout: Layout) -> Layout:
        """Return the layout that searches go by."""
        return layout

    @contextmanager
    def writing(self, *, mending: bool = False, freeing: bool = False, wait: float | None = None) -> Iterator[None]:
        """Be the only writer; what another process has changed is known then.

        What is damaged is refused, unless it is to be mended. On a full disk, ``freeing`` has the room that is kept for
        it, and others are told how much is missing. ``wait`` is for those who have let others in before.
        """
        with self.lock(self._write_wait if wait is None else wait), self._room(spends=mending or freeing):
            self._begin_writing(mending=mending)
            self.check_layout()
            with ChangeJournal(self.layout.folder).noting(self.store, self.next_ns, self.layout.history_days):
                yield
            self.store.tables.acknowledge()

    def lock(self, wait: float = 0.0) -> AbstractContextManager[None]:
        """Hold the lock of the one writer, or raise after ``wait`` seconds."""
        return write_lock(self._lock_path, wait)

    def is_awaited(self) -> bool:
        """Return True if another writer waits for the lock."""
        return is_awaited(self._lock_path)

    def journal(self) -> ChangeJournal:
        """Return the list of earlier states; one that somebody deleted is refused, until it is begun anew."""
        ledger, journal = self.store.tables.ledger, ChangeJournal(self.layout.folder)
        if ledger is not None and ledger.lacks(journal.path.name):
            raise CollectionError(f"{journal.path} is missing; `diptych repair` begins it anew with what there is now")
        return journal

    @contextmanager
    def _room(self, *, spends: bool) -> Iterator[None]:
        reserve = self.layout.reserve
        if spends:
            spend_reserve(reserve)
        else:
            keep_reserve(reserve)
        try:
            yield
        except OSError as problem:
            if not is_no_room(problem):
                raise
            raise NoRoomError(self.layout.folder, missing_bytes(self.layout.folder)) from problem
        finally:
            with suppress(NoRoomError, OSError):
                keep_reserve(reserve)

    def _begin_writing(self, *, mending: bool = False) -> None:
        """Bring store and ledger together; search files of what was taken back are made anew."""
        ledger = self.store.tables.ledger
        if ledger is not None and ledger.begin(mending=mending):
            self.segment_files.forget()
            self.store.tables.forget_handles()

    def write_layout(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        """Put other retrievers into force; the caller is the only writer."""
        for names in layout.in_force:
            self.store.tables.keep_retriever(names)
        self.store.tables.acknowledge()
        layout.write()
        self.use(layout, retriever)

    def delete_saved(self) -> None:
        """Delete the saved retrievers that are in force no more; the caller is the only writer."""
        delete_saved(self.layout, self.store)

    def next_ns(self) -> int:
        """Return a time later than that of every change so far; the caller is the only writer."""
        with self._lock:
            self.items()
            return max(time.time_ns(), self._segments.newest_ns + 1)

    def retriever(self, name: str | None = None) -> RetrieverProtocol:
        """Return a stored retriever, by default the one in force."""
        with self._lock:
            return self.retry_if_changed(lambda: self._state_of(self.layout.named(name)).source)

    def loaded(self, folder: Path) -> RetrieverProtocol:
        """Return the retriever that is saved in a folder, which is loaded once."""
        known = {names.saved: names for names in self.layout.stored}
        return self._state_of(known[folder.name]).source if folder.name in known else self._load_retriever(folder)

    def load(self, names: RetrieverNames) -> RetrieverProtocol:
        """Read a saved retriever, which must still make the points it was saved for."""
        if self.store.tables.ledger is not None:
            self.store.tables.ledger.check_marks(saved_unit(names.saved))
        try:
            loaded = self._load_retriever(self.layout.saved_retriever(names))
        except (DiptychError, OSError):
            # Another process may have saved it again, with another calibration, and deleted the older form.
            current = Layout.read(self.layout.folder).with_fingerprint(names.fingerprint)
            if current is None or current.saved == names.saved:
                raise
            loaded = self._load_retriever(self.layout.saved_retriever(current))
        check_same_points(loaded, names)
        return loaded

    def check_layout(self) -> None:
        """Notice that another process has changed the retrievers."""
        with self._lock:
            # Taken before the file is read: one that is replaced meanwhile is looked at again.
            stamp = self._stamp_of_layout()
            if stamp != self._layout_stamp:
                self._take_over(Layout.read(self.layout.folder), None)
                self._layout_stamp = stamp

    def retry_if_changed(self, look: Callable[[], Found]) -> Found:
        """Return what a look finds under the retrievers of one moment; it is repeated when they change meanwhile."""
        while True:
            self.check_layout()
            try:
                found = look()
            except Exception:
                # What is missing says nothing where another process has just removed a retriever and its files.
                if self._stamp_of_layout() == self._layout_stamp:
                    raise
                continue
            if self._stamp_of_layout() == self._layout_stamp:
                return found

    def items(self) -> LiveItems:
        """Return the items as they are now."""
        with self._lock:
            if not self._is_current():
                version = self.store.version()
                if version != self._version:
                    self._items = self._segments.refresh()
                    self._version = version
            if self._segments.n_recent >= FOLD_FROM and time.monotonic() >= self._fold_again:
                self._start("fold", self.fold)
            return self._items

    def find(self, which: str | os.PathLike[str], items: LiveItems | None = None) -> Item | None:
        """Return an item by id or path, or None."""
        items = self.items() if items is None else items
        if isinstance(which, str) and (item := items.get(which)) is not None:
            return item
        stored = items.at_path(self.root.stored(self.root.given(which)))
        # A file that is gone is still known by the path it is stored under.
        return stored or items.at_path(os.fspath(which))

    def use(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        """Take over a layout that this process has just written."""
        with self._lock:
            self._take_over(layout, retriever)
            self._layout_stamp = self._stamp_of_layout()

    def snapshot(self, name: str | None = None) -> SearchSnapshot:
        """Return the present state of a retriever, by default the one in force, ready to be asked."""
        with self._lock:
            return self.retry_if_changed(lambda: self._snapshot_of(self.layout.named(name)))

    def stored_rows(
        self, table: Callable[[RetrieverNames, Side], str], side: Side, ids: Sequence[str] | None, name: str | None
    ) -> tuple[list[str], AnyArray]:
        """Return ids and rows of a retriever's table of points or features, in the order asked or of addition."""
        if side not in SIDES:
            raise InvalidInputError(f"side must be 'image' or 'text', got {side!r}")

        def look() -> tuple[list[str], AnyArray]:
            contents = self.items().contents_of(side, ids)
            distinct = list(dict.fromkeys(contents.values()))
            rows = self.store.vectors_by_key(table(self.layout.named(name), side), distinct)
            found = [item_id for item_id, content in contents.items() if content in rows]
            if not found:
                return found, np.zeros((0, 0), dtype=np.float32)
            return found, np.stack([rows[contents[item_id]] for item_id in found])

        return self.retry_if_changed(look)

    def lacking(self, names: RetrieverNames, side: Side) -> int:
        """Return how many pictures or captions have no point of a retriever."""
        return lacking_points(self.store, names, side, self.items())

    def fold(self, *, everything: bool = False) -> None:
        """Put the latest changes into files; searches go on meanwhile."""
        with self._lock:
            self.items()
            work = self._segments.fold(self._prepare, everything=everything)
        if work is not None:
            try:
                work()
            except OSError as problem:
                # A full disk, for example: searches do without, and it is tried again later.
                _log.warning("search files cannot be written to %s: %s", self.layout.index, problem)
                self._fold_again = time.monotonic() + _FOLD_PAUSE_SECONDS
            with self._lock:
                self._version = -1

    def tidy(self, n_changed: int) -> None:
        """Join the small files of the store, and put many changes into files; the caller is the only writer."""
        if is_nearly_full(self.layout.store):
            # What is left is for removing more.
            self.items()
            return
        self.store.compact(n_changed)
        self.items()
        if self._segments.n_recent >= FOLD_FROM:
            self.fold()

    def forget_points(self, names: RetrieverNames, kind: PointKind | None = None) -> None:
        """Look for the points of a retriever anew, all or those of one kind, after it got some that it lacked."""
        with self._lock:
            self.segment_files.forget_points(names.fingerprint, kind)
            if names.fingerprint in self._states:
                self._states[names.fingerprint].forget_points()

    def tidy_index(self) -> None:
        """Delete files of segments and of points that nobody uses."""
        self.segment_files.delete_unused(names.fingerprint for names in self.layout.stored)

    def build_index(self, kind: PointKind, name: str | None = None, *, wait: bool = True) -> None:
        """Index the points of one kind, at once or beside the searches, which go on exactly meanwhile."""
        names = self.layout.named(name)
        if wait:
            self._build(kind, names)
        else:
            self._start((names.fingerprint, kind), partial(self._build, kind, names))

    def keep_outputs(self, side: Side, name: str | None = None) -> None:
        """Keep the outputs behind codes beside them, while searches go on and make them of stored features."""
        names = self.layout.named(name)
        self._start((names.fingerprint, side, "outputs"), partial(self._keep_outputs, side, names))

    def close(self) -> None:
        """Wait for files and indexes that are being made."""
        for thread in list(self._working.values()):
            thread.join()

    def _start(self, key: object, work: Callable[[], None]) -> None:
        with self._lock:
            running = self._working.get(key)
            if running is None or not running.is_alive():
                thread = threading.Thread(target=work)
                self._working[key] = thread
                thread.start()

    def _prepare(self, segment: FileSegment) -> None:
        for names in self.layout.stored:
            with self._lock:
                state = self._states.get(names.fingerprint)
            if state is not None:
                state.prepare(segment)

    def _snapshot_of(self, names: RetrieverNames) -> SearchSnapshot:
        items, state = self.items(), self._state_of(names)
        return SearchSnapshot(
            self.root,
            names,
            state.source,
            state.query_embeddings,
            items,
            state.galleries(items),
            state.features,
            self.store,
        )

    def _take_over(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        """Use a layout; the galleries of retrievers that it lacks are let go."""
        self.layout = layout
        self.store.forget_handles()
        stored = {names.fingerprint: names for names in layout.stored}
        self._states = {key: state for key, state in self._states.items() if key in stored}
        for fingerprint, state in self._states.items():
            state.use(stored[fingerprint], None)
            # Another process may have made points that it lacked.
            state.forget_points()
        if retriever is not None:
            names = stored[retriever.fingerprint]
            self._state_of(names).use(names, retriever)

    def _state_of(self, names: RetrieverNames) -> RetrieverState:
        if names.fingerprint not in self._states:
            self._states[names.fingerprint] = RetrieverState(names, self.store, self.load)
        return self._states[names.fingerprint]

    def _build(self, kind: PointKind, names: RetrieverNames) -> None:
        self.fold(everything=True)
        with self._lock:
            self.check_layout()
            if self.layout.with_fingerprint(names.fingerprint) is None:
                # Removed since the index was asked for.
                return
            state = self._state_of(names)
            galleries = state.galleries(self.items())
        if kind not in galleries:
            return
        for part, block in zip(galleries[kind].parts, galleries[kind].blocks, strict=True):
            if block.index is None and len(block) >= _FEWEST_INDEXED:
                indexed = state.build_index(kind, part.segment, galleries)
                with self._lock:
                    state.take_block(kind, part.segment, indexed)

    def _keep_outputs(self, side: Side, names: RetrieverNames) -> None:
        with fold_lock(self.segment_files.folder, "outputs.lock") as is_ours:
            if not is_ours:
                return
            with self._lock:
                self.check_layout()
                if self.layout.with_fingerprint(names.fingerprint) is None:
                    return
                state = self._state_of(names)
                gallery = state.galleries(self.items())[side]
            for part, block in zip(gallery.parts, gallery.blocks, strict=True):
                if isinstance(part.segment, FileSegment) and block.outputs is None:
                    filled = state.with_outputs(side, part.segment, block)
                    with self._lock:
                        state.take_block(side, part.segment, filled)

    def _stamp_of_layout(self) -> tuple[int, int]:
        return stamp_of_layout(self._layout_path)

    def _is_current(self) -> bool:
        """Return True if nothing can have been committed since the last look, by the time of the folder of versions."""
        try:
            stamp = os.stat(self._versions_path).st_mtime_ns
        except OSError:
            return False
        # Clocks of file systems tick slowly, so a time that is not well past proves nothing.
        settled = time.time_ns() - stamp > 2 * 10**9
        known = stamp == self._version_stamp and self._version >= 0
        self._version_stamp = stamp if settled else -1
        return known and settled
