"""What a collection knows at this moment, in memory, and its stored points and features."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.browse.item_catalogue import Catalogue, image_points, text_hash, text_points
from diptych.collection.search.approximate_index import ApproximateIndex, IndexCache
from diptych.collection.search.encoded_query import QueryEmbeddingCache
from diptych.collection.search.gallery import Gallery, Scoring
from diptych.collection.search.snapshot import SearchSnapshot
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import Layout, RetrieverNames, Root, write_lock
from diptych.collection.storage.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import check_same_points
from diptych.collection.storage.store import Store, features_table, points_table
from diptych.errors import CollectionError, DiptychError, InvalidInputError, UnknownItemError
from diptych.space import Direction

_QUERY_SIDE: dict[Side, Direction] = {"image": "text_query", "text": "image_query"}
_WANTED = {"image": image_points, "text": text_points}


class RetrieverState:
    """One retriever with the galleries of its points, each loaded when it is first asked for."""

    def __init__(
        self, names: RetrieverNames, store: Store, load: Callable[[RetrieverNames], RetrieverProtocol]
    ) -> None:
        self.names = names
        self.galleries: dict[Side, Gallery] = {}
        self._store = store
        self._load = load
        self._source: RetrieverProtocol | None = None
        self._query_embeddings: QueryEmbeddingCache | None = None
        self._catalogue: Catalogue | None = None

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

    def load_for(self, catalogue: Catalogue, finish: Callable[[Side, Gallery], Gallery]) -> None:
        """Make the galleries those of a catalogue; ``finish`` gets each that is made for the first time."""
        if self._catalogue is catalogue:
            return
        for side, direction in _QUERY_SIDE.items():
            first = side not in self.galleries
            gallery = Gallery(Scoring(self.source.space, direction)) if first else self.galleries[side]
            gallery = gallery.synchronised(_WANTED[side](catalogue.items.values()), partial(self._points, side))
            self.galleries[side] = finish(side, gallery) if first else gallery
        self._catalogue = catalogue

    def apply_changes(self, before: Catalogue, after: Catalogue, old: Iterable[Item], new: Iterable[Item]) -> None:
        """Change the galleries where items have changed; cheaper than comparing all of them."""
        if self._catalogue is not before:
            return
        for side, gallery in self.galleries.items():
            wanted = _WANTED[side]
            self.galleries[side] = gallery.changed(wanted(old), wanted(new), partial(self._points, side))
        self._catalogue = after

    def features(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        """Return the stored features of some contents, as far as there are any."""
        return self._store.vectors_by_key(features_table(self.names, side), keys)

    def _points(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        return self._store.vectors_by_key(points_table(self.names, side), keys)


Found = TypeVar("Found")

LoadRetriever = Callable[[Path], RetrieverProtocol]

# Below this many points comparing all of them is fast enough, and exact.
APPROXIMATE_FROM = 100_000
_FEWEST_INDEXED = 1000
_MANY_CHANGES = 1000


class LiveState:
    """The catalogue and the galleries of a collection, brought up to date before each use: others may write."""

    def __init__(self, folder: Path, load_retriever: LoadRetriever, write_wait: float = 0.0) -> None:
        self.layout = Layout.read(folder)
        self.store = Store(self.layout.store)
        self.root = Root(self.layout.root_folder)
        self._write_wait = write_wait
        self._layout_path = str(self.layout.folder / "collection.json")
        self._versions_path = str(self.store.version_folder())
        self._load_retriever = load_retriever
        self._lock = threading.RLock()
        self._layout_stamp = self._stamp_of_layout()
        self._catalogue = Catalogue()
        self._version = -1
        self._version_stamp = -1
        # Written by this process and not looked at since: items by id, None for one that was removed.
        self._pending_changes: dict[str, Item | None] = {}
        # What is loaded of each stored retriever, by fingerprint.
        self._states: dict[str, RetrieverState] = {}
        self._building: dict[tuple[str, Side], threading.Thread] = {}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; what another process has changed is known then."""
        with write_lock(self.layout.folder / "write.lock", self._write_wait):
            self.check_layout()
            yield

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

    def catalogue(self) -> Catalogue:
        """Return the items as they are now."""
        with self._lock:
            if not self._is_current():
                version = self.store.version()
                if version != self._version:
                    self._read_changes()
                    self._version = version
            self._take_in()
            return self._catalogue

    def find(self, which: str | os.PathLike[str], catalogue: Catalogue | None = None) -> Item | None:
        """Return an item by id or path, or None."""
        catalogue = self.catalogue() if catalogue is None else catalogue
        if isinstance(which, str) and which in catalogue.items:
            return catalogue.items[which]
        stored = catalogue.by_path.get(self.root.stored(self.root.given(which)))
        # A file that is gone is still known by the path it is stored under.
        return stored or catalogue.by_path.get(os.fspath(which))

    def publish(self, put: Iterable[Item] = (), removed: Iterable[str] = ()) -> None:
        """Note what this process, being the only writer, has just written; the next look takes it in."""
        with self._lock:
            self._pending_changes.update({item.id: item for item in put})
            self._pending_changes.update(dict.fromkeys(removed))
            self._version = self.store.version()

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
            contents = _contents(self.catalogue(), side, ids)
            distinct = list(dict.fromkeys(contents.values()))
            rows = self.store.vectors_by_key(table(self.layout.named(name), side), distinct)
            found = [item_id for item_id, content in contents.items() if content in rows]
            if not found:
                return found, np.zeros((0, 0), dtype=np.float32)
            return found, np.stack([rows[contents[item_id]] for item_id in found])

        return self.retry_if_changed(look)

    def lacking(self, names: RetrieverNames, side: Side) -> int:
        """Return how many pictures or captions have no point of a retriever."""
        there = set(self.store.keys(points_table(names, side)))
        return sum(content not in there for content in self.catalogue().contents(side))

    def build_index(self, side: Side, name: str | None = None, *, wait: bool = True) -> None:
        """Index a side anew, at once or beside the searches, which go on exactly meanwhile."""
        names = self.layout.named(name)
        if wait:
            self._build(side, names)
            return
        with self._lock:
            running = self._building.get((names.fingerprint, side))
            if running is None or not running.is_alive():
                thread = threading.Thread(target=self._build, args=(side, names))
                self._building[names.fingerprint, side] = thread
                thread.start()

    def close(self) -> None:
        """Wait for indexes that are being built."""
        for thread in list(self._building.values()):
            thread.join()

    def _snapshot_of(self, names: RetrieverNames) -> SearchSnapshot:
        catalogue = self.catalogue()
        state = self._state_of(names)
        state.load_for(catalogue, partial(self._with_kept_index, names))
        parts = state.source, state.query_embeddings, catalogue, dict(state.galleries), state.features
        return SearchSnapshot(self.root, names, *parts)

    def _take_over(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        """Use a layout; the galleries of retrievers that it lacks are let go."""
        self.layout = layout
        stored = {names.fingerprint: names for names in layout.stored}
        self._states = {key: state for key, state in self._states.items() if key in stored}
        for fingerprint, state in self._states.items():
            state.use(stored[fingerprint], None)
        if retriever is not None:
            names = stored[retriever.fingerprint]
            self._state_of(names).use(names, retriever)

    def _state_of(self, names: RetrieverNames) -> RetrieverState:
        if names.fingerprint not in self._states:
            self._states[names.fingerprint] = RetrieverState(names, self.store, self.load)
        return self._states[names.fingerprint]

    def _build(self, side: Side, names: RetrieverNames) -> None:
        with self._lock:
            self.check_layout()
            if self.layout.with_fingerprint(names.fingerprint) is None:
                # Removed since the index was asked for.
                return
            galleries = self._snapshot_of(names).galleries
        gallery, other = galleries[side], galleries["text" if side == "image" else "image"]
        metric = gallery.scoring.index_metric
        if metric is None or len(gallery) < _FEWEST_INDEXED:
            return
        rows = np.flatnonzero(gallery.live)
        # What will be asked are points of the other side, which may lie elsewhere than those that are found.
        queries = other.vectors[other.live] if len(other) >= 100 else None
        index = ApproximateIndex.build(np.ascontiguousarray(gallery.vectors[rows]), metric, queries)
        keys, hashes = [gallery.keys[row] for row in rows], [gallery.hashes[row] for row in rows]
        with self._lock:
            state = self._states.get(names.fingerprint)
            if state is not None and side in state.galleries:
                state.galleries[side] = state.galleries[side].with_index(index, keys, hashes)
        IndexCache(self.layout.index).write(side, names.fingerprint, index, keys, hashes)

    def _read_changes(self) -> None:
        """Learn what another process has written: the items that changed where they are few, else all of them."""
        self._pending_changes.clear()
        known = self._catalogue.items
        stamps = self.store.item_stamps() if known else {}
        changed = [
            item_id
            for item_id, stamp in stamps.items()
            if (item := known.get(item_id)) is None or stamp != (item.added_ns, item.updated_ns)
        ]
        newest = next(reversed(known.values())).added_ns if known else 0
        # An item that was removed and added again has another place in the order.
        keeps_order = all(
            stamps[item_id][0] == known[item_id].added_ns if item_id in known else stamps[item_id][0] > newest
            for item_id in changed
        )
        if not known or not keeps_order or len(changed) > _MANY_CHANGES:
            self._catalogue = Catalogue(self.store.read_items())
            return
        read = {item.id: item for item in self.store.read_items(changed)}
        gone = [item_id for item_id in known if item_id not in stamps]
        # What has gone since the stamps were read is gone here too.
        gone += [item_id for item_id in changed if item_id not in read]
        self._pending_changes.update({**read, **dict.fromkeys(gone)})

    def _take_in(self) -> None:
        if not self._pending_changes:
            return
        before, unseen = self._catalogue, self._pending_changes
        put = [item for item in unseen.values() if item is not None]
        self._pending_changes = {}
        self._catalogue = before.changed(put, [item_id for item_id, item in unseen.items() if item is None])
        old = [before.items[item_id] for item_id in unseen if item_id in before.items]
        for state in self._states.values():
            state.apply_changes(before, self._catalogue, old, put)

    def _with_kept_index(self, names: RetrieverNames, side: Side, gallery: Gallery) -> Gallery:
        if len(gallery) < APPROXIMATE_FROM:
            return gallery
        kept = IndexCache(self.layout.index).read(side, names.fingerprint)
        return gallery if kept is None else gallery.with_index(*kept)

    def _stamp_of_layout(self) -> tuple[int, int]:
        # The file is replaced, never rewritten, so its number changes with it.
        status = os.stat(self._layout_path)
        return status.st_ino, status.st_mtime_ns

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


def _contents(catalogue: Catalogue, side: Side, ids: Sequence[str] | None) -> dict[str, str]:
    """Return what the points are stored under, by id."""
    known = catalogue.items if side == "image" else catalogue.captions
    wanted = list(known) if ids is None else list(ids)
    unknown = [item_id for item_id in wanted if item_id not in known]
    if unknown:
        what, error = ("item", UnknownItemError) if side == "image" else ("caption", CollectionError)
        raise error(f"there is no {what} {unknown[0]!r} in the collection; take the id of an answer")
    if side == "text":
        return {caption_id: text_hash(catalogue.captions[caption_id][1]) for caption_id in wanted}
    return {item_id: content for item_id in wanted if (content := catalogue.items[item_id].content_hash) is not None}
