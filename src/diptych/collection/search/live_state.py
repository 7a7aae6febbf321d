"""What a collection knows at this moment: its items, its points, and the changes since they were put into files."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.browse.live_items import LiveItems, text_hash
from diptych.collection.browse.segment import FileSegment, Segment
from diptych.collection.search.encoded_query import QueryEmbeddingCache
from diptych.collection.search.folding import FOLD_FROM, LiveSegments, LoadedRows, SegmentFiles
from diptych.collection.search.gallery import Gallery, PointBlock, Scoring
from diptych.collection.search.point_files import PointFiles, lacking_points
from diptych.collection.search.snapshot import SearchSnapshot
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import Layout, RetrieverNames, Root, stamp_of_layout
from diptych.collection.storage.place import Place
from diptych.collection.storage.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import check_same_points, delete_saved
from diptych.collection.storage.store import Store, features_table
from diptych.errors import CollectionError, DiptychError, InvalidInputError, UnknownItemError
from diptych.space import Direction

_QUERY_SIDE: dict[Side, Direction] = {"image": "text_query", "text": "image_query"}
_OTHER: dict[Side, Side] = {"image": "text", "text": "image"}
# Below this many points comparing all of them is fast enough, and exact.
APPROXIMATE_FROM = 100_000


class RetrieverState:
    """One retriever with the points of the segments, each loaded when it is first asked for."""

    def __init__(
        self, names: RetrieverNames, store: Store, load: Callable[[RetrieverNames], RetrieverProtocol]
    ) -> None:
        self.names = names
        self._store = store
        self._load = load
        self._source: RetrieverProtocol | None = None
        self._query_embeddings: QueryEmbeddingCache | None = None
        self._files: dict[Side, PointFiles] = {}
        self._blocks: dict[tuple[Side, Segment], PointBlock] = {}
        self._items: LiveItems | None = None
        self._galleries: dict[Side, Gallery] = {}

    @property
    def source(self) -> RetrieverProtocol:
        """The retriever itself."""
        if self._source is None:
            self._source = self._load(self.names)
        return self._source

    @property
    def query_embeddings(self) -> QueryEmbeddingCache:
        """The points of the words of queries."""
        if self._query_embeddings is None:
            self._query_embeddings = QueryEmbeddingCache(self.source)
        return self._query_embeddings

    def use(self, names: RetrieverNames, source: RetrieverProtocol | None) -> None:
        """Take over another saved form of the retriever, which makes the same points."""
        if source is not None or names.saved != self.names.saved:
            self._source = source
            self._query_embeddings = None
        self.names = names

    def forget_points(self) -> None:
        """Load the points again when they are asked for."""
        self._blocks, self._items = {}, None

    def galleries(self, items: LiveItems) -> dict[Side, Gallery]:
        """Return the points of the items."""
        if self._items is not items:
            wanted = {(side, part.segment) for side in SIDES for part in items.parts}
            self._blocks = {key: block for key, block in self._blocks.items() if key in wanted}
            self._galleries = {side: self._gallery(side, items) for side in SIDES}
            self._items = items
        return dict(self._galleries)

    def _gallery(self, side: Side, items: LiveItems) -> Gallery:
        scoring = Scoring(self.source.space, _QUERY_SIDE[side])
        if side not in self._files:
            self._files[side] = PointFiles(self._store, self.names, side, scoring)
        for part in items.parts:
            if (side, part.segment) not in self._blocks:
                self._blocks[side, part.segment] = self._files[side].block(part.segment)
        return Gallery(scoring, items.parts, tuple(self._blocks[side, part.segment] for part in items.parts))

    def prepare(self, segment: FileSegment) -> None:
        """Make the files of a segment's points before it is used, and the indexes of large ones."""
        blocks = {side: files.block(segment) for side, files in list(self._files.items())}
        for side, block in blocks.items():
            if len(block) >= APPROXIMATE_FROM:
                self._files[side].build_index(segment, block, _sample(blocks[_OTHER[side]].vectors))

    def build_index(self, side: Side, segment: Segment, galleries: Mapping[Side, Gallery]) -> PointBlock:
        """Return the points of a segment with an index, which searches use after `take_index`."""
        gallery, other = galleries[side], galleries[_OTHER[side]]
        numbers = [number for number, part in enumerate(gallery.parts) if part.segment is segment]
        largest = max((block.vectors for block in other.blocks), key=len)
        return self._files[side].build_index(segment, gallery.blocks[numbers[0]], _sample(largest))

    def take_index(self, side: Side, segment: Segment, block: PointBlock) -> None:
        """Let searches use an index, unless its segment has gone meanwhile."""
        if (side, segment) in self._blocks:
            self._blocks[side, segment] = block
            self._items = None

    def features(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        """Return the stored features of some contents, as far as there are any."""
        return self._store.vectors_by_key(features_table(self.names, side), keys)


def _sample(points: AnyArray) -> AnyArray | None:
    """Return some of the points of the other side: what will be asked may lie elsewhere than what is found."""
    if len(points) < _FEWEST_QUERIES:
        return None
    chosen = np.random.default_rng(0).permutation(len(points))[:_QUERIES]
    return np.ascontiguousarray(points[np.sort(chosen)])


Found = TypeVar("Found")

LoadRetriever = Callable[[Path], RetrieverProtocol]

_FEWEST_INDEXED = 1000
_FEWEST_QUERIES, _QUERIES = 100, 1000
_FOLD_PAUSE_SECONDS = 60.0
_log = logging.getLogger("diptych.collection")


class LiveState:
    """The items and the points of a collection, brought up to date before each use: others may write."""

    def __init__(self, place: Place, load_retriever: LoadRetriever, write_wait: float = 0.0) -> None:
        self.place = place
        self._write_wait = write_wait
        self._load_retriever = load_retriever
        self._lock = threading.RLock()
        self._working: dict[object, threading.Thread] = {}
        self._fold_again = 0.0
        self._read(place.folder)

    def _read(self, folder: Path) -> None:
        """Begin with what a folder holds."""
        self.layout = Layout.read(folder)
        self.store = Store(self.layout.store, self.place.copies)
        self.root = Root(self.layout.root_folder)
        self._layout_path = str(folder / "collection.json")
        self._versions_path = str(self.store.version_folder())
        self._layout_stamp = self._stamp_of_layout()
        self.segment_files = SegmentFiles(self.layout.index)
        self._segments = LiveSegments(self.store, self.segment_files)
        self._items = LiveItems()
        self._version = -1
        self._version_stamp = -1
        # What is loaded of each stored retriever, by fingerprint.
        self._states: dict[str, RetrieverState] = {}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; what another process has changed is known then."""
        with self.place.writing(self._write_wait) as cuts_off:
            self.check_layout()
            if cuts_off:
                self.store.write_next_versions()
                self.write_layout(self.layout, None)
                self.place.has_cut_off()
            yield

    def write_layout(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        """Put other retrievers into force; the caller is the only writer."""
        layout.write()
        self.place.layout_written()
        self.use(layout, retriever)

    def delete_saved(self) -> None:
        """Delete the saved retrievers that are in force no more; the caller is the only writer."""
        delete_saved(self.layout)
        self.place.retrievers_deleted(names.saved for names in self.layout.in_force)

    def next_ns(self) -> int:
        """Return a time later than that of every change so far; the caller is the only writer."""
        with self._lock:
            self.items()
            return max(time.time_ns(), self._segments.newest_ns + 1)

    def retriever(self, name: str | None = None) -> RetrieverProtocol:
        """Return a stored retriever, by default the one in force."""
        with self._lock:
            return self.retry_if_changed(lambda: self._state_of(self.layout.named(name)).source)

    def load(self, names: RetrieverNames) -> RetrieverProtocol:
        """Read a saved retriever, which must still make the points it was saved for."""
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
            self._check_folder()
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
            self._check_folder()
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
            contents = _contents(self.items(), side, ids)
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

    def fold(self, *, everything: bool = False, loaded: LoadedRows | None = None) -> None:
        """Put the latest changes into files; searches go on meanwhile."""
        with self._lock:
            if loaded is None:
                self.items()
            work = self._segments.fold(self._prepare, everything=everything, loaded=loaded)
        if work is not None:
            try:
                work()
            except OSError as problem:
                # A full disk, for example: searches do without, and it is tried again later.
                _log.warning("search files cannot be written to %s: %s", self.layout.index, problem)
                self._fold_again = time.monotonic() + _FOLD_PAUSE_SECONDS
            with self._lock:
                self._version = -1

    def tidy(self, n_changed: int, loaded: LoadedRows | None = None) -> None:
        """Join the small files of the store, and put many changes into files; the caller is the only writer."""
        with ThreadPoolExecutor(1) as beside:
            compacting = beside.submit(self.store.compact, n_changed)
            if loaded is not None and len(loaded) >= FOLD_FROM:
                self.fold(loaded=loaded)
        compacting.result()
        self.items()
        if self._segments.n_recent >= FOLD_FROM:
            self.fold()

    def forget_points(self, names: RetrieverNames) -> None:
        """Look for the points of a retriever anew, after it got some that it lacked."""
        with self._lock:
            self.segment_files.forget_points(names.fingerprint)
            if names.fingerprint in self._states:
                self._states[names.fingerprint].forget_points()

    def tidy_index(self) -> None:
        """Delete files of segments and of points that nobody uses."""
        self.segment_files.delete_unused(names.fingerprint for names in self.layout.stored)

    def build_index(self, side: Side, name: str | None = None, *, wait: bool = True) -> None:
        """Index a side, at once or beside the searches, which go on exactly meanwhile."""
        names = self.layout.named(name)
        if wait:
            self._build(side, names)
        else:
            self._start((names.fingerprint, side), partial(self._build, side, names))

    def close(self) -> None:
        """Wait for files and indexes that are being made."""
        self.place.close()
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
            self.store.captions_with,
        )

    def _take_over(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        """Use a layout; the galleries of retrievers that it lacks are let go."""
        self.layout = layout
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

    def _build(self, side: Side, names: RetrieverNames) -> None:
        self.fold(everything=True)
        with self._lock:
            self.check_layout()
            if self.layout.with_fingerprint(names.fingerprint) is None:
                # Removed since the index was asked for.
                return
            state = self._state_of(names)
            galleries = state.galleries(self.items())
        for part, block in zip(galleries[side].parts, galleries[side].blocks, strict=True):
            if block.index is None and len(block) >= _FEWEST_INDEXED:
                indexed = state.build_index(side, part.segment, galleries)
                with self._lock:
                    state.take_index(side, part.segment, indexed)

    def _check_folder(self) -> None:
        if self.place.folder != self.layout.folder:
            self._read(self.place.folder)

    def _stamp_of_layout(self) -> tuple[int, int]:
        return stamp_of_layout(self._layout_path)

    def _is_current(self) -> bool:
        """Say whether nothing can have been committed since the last look, by the time of the folder of versions."""
        try:
            stamp = os.stat(self._versions_path).st_mtime_ns
        except OSError:
            return False
        # Clocks of file systems tick slowly, so a time that is not well past proves nothing.
        settled = time.time_ns() - stamp > 2 * 10**9
        known = stamp == self._version_stamp and self._version >= 0
        self._version_stamp = stamp if settled else -1
        return known and settled


def _contents(items: LiveItems, side: Side, ids: Sequence[str] | None) -> dict[str, str]:
    """Return what the points are stored under, by id."""
    if ids is None:
        found = list(items)
    else:
        found = []
        for one in ids:
            held = items.find("id" if side == "image" else "caption", one)
            if not held:
                what, error = ("item", UnknownItemError) if side == "image" else ("caption", CollectionError)
                raise error(f"there is no {what} {one!r} in the collection; take the id of an answer")
            found.append(held[0])
    if side == "image":
        return {item.id: item.content_hash for item in found if item.content_hash is not None}
    contents = {
        caption_id: text_hash(text)
        for item in found
        for caption_id, text in zip(item.caption_ids, item.captions, strict=True)
    }
    return contents if ids is None else {one: contents[one] for one in ids}
