"""What a search looks at: a model with its points, and the items or captions that have one, by id."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import PointKind, RetrieverProtocol, Side
from diptych.collection.searching.encoded_query import QueryEmbeddingCache
from diptych.collection.store.columns import Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id
from diptych.collection.store.kept import picture_texts
from diptych.collection.store.points import point_table
from diptych.collection.vectors.neighbours import VectorIndex
from diptych.encoders.image.picture_parts import PictureText

if TYPE_CHECKING:
    from diptych.collection.root import Root
    from diptych.collection.store.models import Model


@dataclass(frozen=True)
class SearchedModel:
    """A stored model that is loaded, and its vector indexes by what their points belong to."""

    model: Model
    retriever: RetrieverProtocol
    indexes: Mapping[PointKind, VectorIndex]
    embeddings: QueryEmbeddingCache
    _pointed: dict[PointKind, tuple[int, BoolArray]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pointed(self, db: Connection, kind: PointKind) -> tuple[int, BoolArray]:
        """Return the id of the newest point, and which contents have points or had some, by their ids."""
        if not self.model.width and not db.value("SELECT width FROM model WHERE id = ?", (self.model.id,)):
            # The tables are made with the first points.
            return 0, np.zeros(0, dtype=bool)
        with self._lock:
            last, mask = self._pointed.get(kind, (0, np.zeros(0, dtype=bool)))
            table = point_table(self.model.id, kind)
            newest = int(db.value(f"SELECT max(id) FROM {table}") or 0)
            if newest != last:
                contents = db.ids(f"SELECT content FROM {table} WHERE id > {last if newest > last else 0}")
                size = max(len(mask), int(contents.max(initial=0)) + 1)
                mask = np.concatenate([mask, np.zeros(size - len(mask), dtype=bool)])
                mask[contents] = True
                self._pointed[kind] = newest, mask
            return newest, mask


@dataclass(frozen=True)
class SearchView:
    """The state that a search answers for: a transaction, the columns of its items, and the model that is asked."""

    db: Connection
    columns: Columns
    searched: SearchedModel
    root: Root


@dataclass(frozen=True)
class Entries:
    """The items with a picture, or the captions, that a search may find: those with a point, of some items or of all.

    Both are named by their ids.
    """

    view: SearchView
    side: Side
    items: BoolArray | None

    @property
    def index(self) -> VectorIndex:
        """The points of the entries."""
        return self.view.searched.indexes[self.side]

    @property
    def region_index(self) -> VectorIndex | None:
        """The points of regions of pictures, where there are some."""
        if self.side == "text" or not self.view.searched.pointed(self.view.db, "region")[0]:
            return None
        return self.view.searched.indexes["region"]

    @cached_property
    def allowed(self) -> BoolArray:
        """Which ids are those of entries."""
        return self._masks[0]

    @cached_property
    def contents(self) -> BoolArray:
        """Which contents are those of entries."""
        return self._masks[1]

    @cached_property
    def count(self) -> int:
        """How many entries there are."""
        return int(np.count_nonzero(self.allowed))

    @cached_property
    def n_with_regions(self) -> int:
        """How many entries have regions."""
        if self.region_index is None:
            return 0
        pointed = self.view.searched.pointed(self.view.db, "region")[1]
        return int(np.count_nonzero(_taken(pointed, self.view.columns.item_content[: len(self.allowed)][self.allowed])))

    @cached_property
    def _masks(self) -> tuple[BoolArray, BoolArray]:
        newest, pointed = self.view.searched.pointed(self.view.db, self.side)
        columns = self.view.columns
        key = "entries", self.view.searched.model.id, self.side, newest
        known: tuple[BoolArray, BoolArray] | None = columns.remembered.get(key) if self.items is None else None
        if known is not None:
            return known
        items = columns.alive if self.items is None else self.items
        if self.side == "image":
            of_entries = columns.item_content
            allowed = items & (of_entries > 0) & _taken(pointed, of_entries)
            chosen = of_entries[allowed]
        else:
            captions = columns.captions
            is_chosen = items[captions.items] & _taken(pointed, captions.contents)
            allowed = np.zeros(int(captions.ids.max(initial=0)) + 1, dtype=bool)
            allowed[captions.ids[is_chosen]] = True
            chosen = captions.contents[is_chosen]
        contents = np.zeros(len(pointed), dtype=bool)
        contents[chosen] = True
        if self.items is None:
            columns.remembered[key] = allowed, contents
        return allowed, contents

    def of_contents(self, contents: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entries of some contents, and the place of the content of each."""
        order = np.argsort(contents)
        table = "item" if self.side == "image" else "caption"
        condition, values = self.view.db.among("content", contents)
        rows = self.view.db.rows(f"SELECT id, content FROM {table} WHERE {condition}", values)
        found = np.array(rows, dtype=np.int64).reshape(-1, 2)
        found = found[_taken(self.allowed, found[:, 0])]
        return found[:, 0], order[np.searchsorted(contents[order], found[:, 1])]

    def contents_of(self, entries: IntArray) -> IntArray:
        """Return the content of each entry."""
        if self.side == "image":
            return self.view.columns.item_content[entries].astype(np.int64)
        captions = self.view.columns.captions
        return captions.contents[np.searchsorted(captions.ids, entries)].astype(np.int64)

    def vectors(self, entries: IntArray) -> AnyArray:
        """Return the stored point of each entry."""
        if not len(entries):
            return np.zeros((0, 0), dtype=np.float16)
        contents = self.contents_of(entries)
        owners, _, vectors = self.index.vectors(self.view.db, np.unique(contents))
        return vectors[np.searchsorted(owners, contents)]

    def items_of(self, entries: IntArray) -> list[Item]:
        """Return the item of each entry."""
        ids = self.item_ids(entries)
        distinct = np.unique(ids)
        known = dict(zip(distinct.tolist(), items_by_id(self.view.db, distinct), strict=True))
        return [known[number] for number in ids.tolist()]

    def said_of(self, entries: IntArray) -> list[tuple[Item, PictureText | None]]:
        """Return the items of some entries with the texts in their pictures."""
        contents = self.view.columns.item_content[self.item_ids(entries)]
        texts = picture_texts(self.view.db, np.unique(contents[contents > 0]))
        return list(zip(self.items_of(entries), map(texts.get, contents.tolist()), strict=True))

    def names(self, entries: IntArray) -> dict[int, str]:
        """Return the public ids of items or captions."""
        table = "item" if self.side == "image" else "caption"
        condition, values = self.view.db.among("id", entries)
        return dict(self.view.db.rows(f"SELECT id, name FROM {table} WHERE {condition}", values))

    def item_ids(self, entries: IntArray) -> IntArray:
        """Return the id of the item of each entry."""
        captions = self.view.columns.captions
        return entries if self.side == "image" else captions.items[np.searchsorted(captions.ids, entries)]


def _taken(mask: BoolArray, places: IntArray) -> BoolArray:
    """Return the values of a mask at some places, False beyond its end."""
    if not len(mask):
        return np.zeros(len(places), dtype=bool)
    return mask.take(places, mode="clip") & (places < len(mask))


def best_ids(ids: IntArray, scores: FloatArray, k: int) -> IntArray:
    """Return the ids with the ``k`` largest scores, best first; equal scores by id.

    >>> best_ids(np.array([7, 5, 6]), np.array([3.0, 1.0, 3.0]), 2)
    array([6, 7])
    """
    return np.asarray(ids[np.lexsort((ids, -scores))][:k])
