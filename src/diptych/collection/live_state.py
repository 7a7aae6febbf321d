"""What a collection knows at this moment, in memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.approximate_index import ApproximateIndex
from diptych.collection.catalogue import Catalogue, image_points, text_points
from diptych.collection.contract import PointSource, Side
from diptych.collection.gallery import Gallery
from diptych.collection.index_cache import IndexCache
from diptych.collection.item import Item
from diptych.collection.layout import Layout
from diptych.collection.own_retriever import check_same_points
from diptych.collection.retriever_names import RetrieverNames
from diptych.collection.root import Root
from diptych.collection.scoring import Scoring
from diptych.collection.searching import Searching
from diptych.collection.store import Store
from diptych.collection.tables import points_table
from diptych.space import Direction

LoadRetriever = Callable[[Path], PointSource]

# Below this many points comparing all of them is fast enough, and exact.
APPROXIMATE_FROM = 100_000

_QUERY_SIDE: dict[Side, Direction] = {"image": "text_query", "text": "image_query"}
_WANTED = {"image": image_points, "text": text_points}
_OTHER: dict[Side, Side] = {"image": "text", "text": "image"}
_FEWEST_INDEXED = 1000
_SETTLED_NS = 2 * 10**9


class LiveState:
    """The catalogue and the galleries of a collection, brought up to date before each use.

    Another process may write at any time, so every look compares the version of the store and the small file that
    names the retriever; a search then works on a state that no longer changes.
    """

    def __init__(self, folder: Path, load_retriever: LoadRetriever) -> None:
        self.layout = Layout.read(folder)
        self.store = Store(self.layout.store)
        self.root = Root(self.layout.root_folder)
        self._layout_path = str(self.layout.folder / "collection.json")
        self._versions_path = str(self.store.version_folder())
        self._load_retriever = load_retriever
        self._lock = threading.RLock()
        self._layout_stamp = self._stamp_of_layout()
        self._retriever: PointSource | None = None
        self._catalogue = Catalogue()
        self._version = -1
        self._version_stamp = -1
        # Written by this process and not looked at since: items by id, None for one that was removed.
        self._unseen: dict[str, Item | None] = {}
        self._galleries: dict[Side, Gallery] = {}
        self._gallery_catalogue: Catalogue | None = None
        self._building: dict[Side, threading.Thread] = {}

    def retriever(self) -> PointSource:
        """Return the retriever in force."""
        with self._lock:
            self.check_layout()
            if self._retriever is None:
                self._retriever = self.load(self.layout.retriever)
            return self._retriever

    def load(self, names: RetrieverNames) -> PointSource:
        """Read a saved retriever, which must still make the points it was saved for."""
        loaded = self._load_retriever(self.layout.saved_retriever(names))
        check_same_points(loaded, names)
        return loaded

    def check_layout(self) -> None:
        """Notice that another process has changed the retriever."""
        with self._lock:
            if self._stamp_of_layout() != self._layout_stamp:
                self.use(Layout.read(self.layout.folder), None)

    def catalogue(self) -> Catalogue:
        """Return the items as they are now."""
        with self._lock:
            if not self._is_current():
                version = self.store.version()
                if version != self._version:
                    self._unseen.clear()
                    self._catalogue, self._version = Catalogue(self.store.read_items()), version
            self._take_in()
            return self._catalogue

    def publish(self, put: Iterable[Item] = (), removed: Iterable[str] = ()) -> None:
        """Note what this process, being the only writer, has just written; the next look takes it in."""
        with self._lock:
            for item in put:
                self._unseen[item.id] = item
            for item_id in removed:
                self._unseen[item_id] = None
            self._version = self.store.version()

    def use(self, layout: Layout, retriever: PointSource | None) -> None:
        """Take over a layout that this process has just written."""
        with self._lock:
            same_points = layout.retriever.fingerprint == self.layout.retriever.fingerprint
            same_retriever = layout.retriever.saved == self.layout.retriever.saved
            self.layout, self._layout_stamp = layout, self._stamp_of_layout()
            if retriever is not None or not same_retriever:
                self._retriever = retriever
            if not same_points:
                self._galleries, self._gallery_catalogue = {}, None

    def searching(self) -> Searching:
        """Return the present state, ready to be asked."""
        with self._lock:
            retriever = self.retriever()
            catalogue = self.catalogue()
            self._update_galleries(retriever, catalogue)
            return Searching(self.root, retriever, catalogue, dict(self._galleries))

    def build_index(self, side: Side, *, wait: bool = True) -> None:
        """Index a side anew, at once or beside the searches, which go on exactly meanwhile."""
        if wait:
            self._build(side)
            return
        with self._lock:
            running = self._building.get(side)
            if running is None or not running.is_alive():
                self._building[side] = threading.Thread(target=self._build, args=(side,))
                self._building[side].start()

    def close(self) -> None:
        """Wait for indexes that are being built."""
        for thread in list(self._building.values()):
            thread.join()

    def _build(self, side: Side) -> None:
        with self._lock:
            galleries, fingerprint = self.searching().galleries, self.layout.retriever.fingerprint
        gallery, other = galleries[side], galleries[_OTHER[side]]
        metric = gallery.scoring.index_metric
        if metric is None or len(gallery) < _FEWEST_INDEXED:
            return
        rows = np.flatnonzero(gallery.live)
        # What will be asked are points of the other side, which may lie elsewhere than those that are found.
        queries = other.vectors[other.live] if len(other) >= 100 else None
        index = ApproximateIndex.build(np.ascontiguousarray(gallery.vectors[rows]), metric, queries)
        keys, hashes = [gallery.keys[row] for row in rows], [gallery.hashes[row] for row in rows]
        with self._lock:
            if self.layout.retriever.fingerprint == fingerprint and side in self._galleries:
                self._galleries[side] = self._galleries[side].with_index(index, keys, hashes)
        IndexCache(self.layout.index).write(side, fingerprint, index, keys, hashes)

    def _update_galleries(self, retriever: PointSource, catalogue: Catalogue) -> None:
        if self._gallery_catalogue is catalogue:
            return
        for side, direction in _QUERY_SIDE.items():
            first = side not in self._galleries
            gallery = Gallery(Scoring(retriever.space, direction)) if first else self._galleries[side]
            gallery = gallery.synchronised(_WANTED[side](catalogue.items.values()), partial(self._points, side))
            self._galleries[side] = self._with_kept_index(side, gallery) if first else gallery
        self._gallery_catalogue = catalogue

    def _take_in(self) -> None:
        if not self._unseen:
            return
        before, unseen = self._catalogue, self._unseen
        put = [item for item in unseen.values() if item is not None]
        self._unseen = {}
        self._catalogue = before.changed(put, [item_id for item_id, item in unseen.items() if item is None])
        if self._gallery_catalogue is before:
            old = [before.items[item_id] for item_id in unseen if item_id in before.items]
            for side, gallery in self._galleries.items():
                wanted = _WANTED[side]
                self._galleries[side] = gallery.changed(wanted(old), wanted(put), partial(self._points, side))
            self._gallery_catalogue = self._catalogue

    def _with_kept_index(self, side: Side, gallery: Gallery) -> Gallery:
        if len(gallery) < APPROXIMATE_FROM:
            return gallery
        kept = IndexCache(self.layout.index).read(side, self.layout.retriever.fingerprint)
        return gallery if kept is None else gallery.with_index(*kept)

    def _points(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        table = points_table(self.layout.retriever, side)
        return {
            key: row
            for found, rows in self.store.read_vectors(table, keys)
            for key, row in zip(found, rows, strict=True)
        }

    def _stamp_of_layout(self) -> tuple[int, int]:
        # The file is replaced, never rewritten, so its number changes with it.
        status = os.stat(self._layout_path)
        return status.st_ino, status.st_mtime_ns

    def _is_current(self) -> bool:
        """Say whether nothing can have been committed since the last look, without opening the store.

        The folder of versions changes its time with each commit. Clocks of file systems tick slowly, so a time that is
        not well past proves nothing.
        """
        try:
            stamp = os.stat(self._versions_path).st_mtime_ns
        except OSError:
            return False
        settled = time.time_ns() - stamp > _SETTLED_NS
        known = stamp == self._version_stamp and self._version >= 0
        self._version_stamp = stamp if settled else -1
        return known and settled
