"""Asking a collection: searches, items, points, and how it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.browse.facets import Facet
from diptych.collection.browse.filter import Filter
from diptych.collection.browse.suggestions import Suggestion
from diptych.collection.browse.thumbnail_cache import Thumbnails
from diptych.collection.changes.maintenance import CheckReport, DuplicateGroup, Maintenance, Status
from diptych.collection.search.live_state import APPROXIMATE_FROM, LiveState
from diptych.collection.search.query import Query
from diptych.collection.search.ranking import RerankBy
from diptych.collection.search.snapshot import Answers, SearchSnapshot, Target, side_of
from diptych.collection.storage.item import Item
from diptych.collection.storage.retriever_protocol import RetrieverProtocol, Side
from diptych.collection.storage.store import features_table, points_table
from diptych.errors import InvalidInputError, UnknownItemError


class CollectionReader:
    """Everything that can be asked of a collection: searches, items, points, how it is."""

    def __init__(self, state: LiveState) -> None:
        self._state = state
        self._maintenance = Maintenance(state)
        self._thumbnails = Thumbnails(lambda: state.store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for indexes that are being built; everything else is on disk already."""
        self._state.close()

    def __len__(self) -> int:
        return len(self._state.items())

    def __iter__(self) -> Iterator[Item]:
        return iter(self._state.items())

    def __contains__(self, which: object) -> bool:
        return isinstance(which, (str, os.PathLike)) and self._state.find(which) is not None

    def __getitem__(self, which: str | os.PathLike[str]) -> Item:
        """Return an item by id or path."""
        item = self._state.find(which)
        if item is None:
            raise UnknownItemError(f"there is no item {os.fspath(which)!r} in {self.name}; name an id or a path in it")
        return item

    @property
    def name(self) -> str:
        """Where the collection is: the path of its folder, or its address in object storage."""
        return self._state.place.name

    @property
    def folder(self) -> Path:
        """The folder of the collection; of one in object storage, the present copy on this machine."""
        return self._state.place.folder

    @property
    def home(self) -> Path:
        """The folder of what belongs to the collection on this machine alone, such as the click log."""
        return self._state.place.home

    @property
    def storage_away_seconds(self) -> float | None:
        """For how long the object storage of the collection could not be reached, None while it can."""
        return self._state.place.storage_away_seconds

    @property
    def root(self) -> Path:
        """The folder that stored paths are relative to."""
        return self._state.root.folder

    @property
    def retriever(self) -> RetrieverProtocol:
        """The retriever that searches use."""
        return self._state.retriever()

    def path_of(self, item: Item) -> Path | None:
        """Return the file of an item, None for one without a picture."""
        return None if item.path is None else self._state.root.file(item.path)

    def original(self, item: Item) -> BinaryIO | None:
        """Return the picture file of an item from the object storage of the collection, None where it is not there."""
        return None if item.content_hash is None else self._state.place.original(item.content_hash)

    def thumbnail(self, which: str | os.PathLike[str]) -> bytes | None:
        """Return a small JPEG of an item's picture, or None."""
        return self.thumbnails([which])[0]

    def thumbnails(self, which: Iterable[str | os.PathLike[str]]) -> list[bytes | None]:
        """Return small JPEGs of many items' pictures, None where there is none."""
        contents = [self[one].content_hash for one in which]
        found = self._thumbnails.get(content for content in contents if content is not None)
        return [None if content is None else found.get(content) for content in contents]

    def items(self, wanted: Filter | str | None = None) -> list[Item]:
        """Return the items that meet a filter, in the order of addition."""
        items, chosen = self._state.items(), Filter.of(wanted)
        return list(items) if chosen is None else items.matching(chosen)

    def facets(self, filter: Filter | str | None = None, *, limit: int = 10) -> list[Facet]:
        """Return labels and metadata to narrow a search down by, counted among the items that meet a filter.

        A field has its ``limit`` most frequent values, or its range; texts that never repeat are left out.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        return self._state.items().facets(Filter.of(filter), limit)

    def suggestions(self, prefix: str, limit: int = 8) -> list[Suggestion]:
        """Return ways to go on with a query: labels, words of captions and frequent phrases, most frequent first.

        In a large collection they may lag behind removals, and leave out phrases that are rare in it.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        return self._state.items().suggestions(prefix, limit)

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        target: Target = "images",
        filter: Filter | str | None = None,
        hybrid: float | bool | None = None,
        exact: bool | None = None,
        min_probability: float | None = None,
        offset: int = 0,
        retriever: str | None = None,
        rerank: int | None = None,
        rerank_by: RerankBy = "codes",
    ) -> Answers:
        """Find pictures or captions.

        Parameters
        ----------
        query:
            A string (see :func:`parse_query`), a :class:`Query`, or a picture as path object, array or Pillow image.
        k, offset:
            How many answers, and how many to leave out before them.
        target:
            ``"images"`` or ``"texts"``.
        filter:
            A :class:`Filter` or its text. With k items that meet it there are k answers.
        hybrid:
            Also look for the words of the query in the captions (BM25) and join both rankings by reciprocal rank; the
            number from 0 to 1 is the weight of the words, True is 0.5.
        exact:
            Compare everything (True), use the index (False), or decide by size (None).
        min_probability:
            Leave out answers below; by default ``no_good_match`` says when even the best is below the cut-off.
        retriever:
            The name of a stored retriever (see :meth:`retrievers`), by default the active one.
        rerank:
            With a hashing method: how many of the nearest codes to order more finely, by the real numbers that the
            query's bits are the signs of.
        rerank_by:
            What they are ordered by: their ``"codes"``, or their stored ``"features"``, which say more.
        """
        side = side_of(target)
        if k < 1 or offset < 0:
            raise InvalidInputError(f"k must be at least 1 and offset at least 0, got {k} and {offset}")
        snapshot, use_all = self._ready(side, exact, retriever)
        return snapshot.search(
            Query.of(query, self._find_picture),
            k=k,
            offset=offset,
            side=side,
            wanted=Filter.of(filter),
            hybrid=hybrid,
            exact=use_all,
            min_probability=min_probability,
            rerank=rerank,
            rerank_by=rerank_by,
        )

    def nearest(
        self,
        points: AnyArray,
        k: int = 10,
        *,
        target: Target = "images",
        exact: bool | None = None,
        retriever: str | None = None,
    ) -> tuple[AnyArray, FloatArray]:
        """Return the ids and scores of the ``k`` nearest to each of many points of the space, for bulk work.

        Ids are those of items, or of captions when texts are searched; an empty id fills up where there are fewer.
        """
        side = side_of(target)
        snapshot, use_all = self._ready(side, exact, retriever)
        gallery = snapshot.galleries[side]
        rows, scores = gallery.search(gallery.scoring.query_vectors(np.asarray(points)), k, exact=use_all)
        return gallery.keys(rows), scores

    def points(
        self, side: Side, ids: Sequence[str] | None = None, retriever: str | None = None
    ) -> tuple[list[str], AnyArray]:
        """Return stored points of the common space with the ids of their rows: items' for images, captions' for texts.

        Without ``ids`` all of them come, in the order of addition; what has no point is left out.
        """
        return self._state.stored_rows(points_table, side, ids, retriever)

    def features(
        self, side: Side, ids: Sequence[str] | None = None, retriever: str | None = None
    ) -> tuple[list[str], AnyArray]:
        """Return stored features, of which the retriever makes points, with the ids of their rows, as `points` does.

        A method that uses the same encoder learns from them without reading a picture again.
        """
        return self._state.stored_rows(features_table, side, ids, retriever)

    def build_index(self, retriever: str | None = None) -> None:
        """Build the search indexes now; a side with fewer than 1,000 points is always compared whole."""
        self._state.build_index("image", retriever)
        self._state.build_index("text", retriever)

    def retriever_named(self, name: str | None) -> RetrieverProtocol:
        """Return a stored retriever by its name in the collection; None is the active one."""
        return self._state.retriever(name)

    def duplicates(self, threshold: float | None = 0.97) -> list[DuplicateGroup]:
        """Return groups of items with the same picture: byte for byte, and by the cosine of their image features.

        ``threshold`` is the least cosine of near duplicates; None looks for exact ones only.
        """
        return self._maintenance.duplicates(threshold)

    def status(self) -> Status:
        """Return counts, sizes, and whether a change of retriever is unfinished."""
        return self._maintenance.status()

    def export(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the items (``csv``, ``jsonl``, ``parquet``) or the points (``npz``, ``safetensors``) to a file.

        Without ``format`` the ending of the name says it. Points come as ``image`` and ``text`` arrays with the ids of
        their rows, as they are searched: centred or scaled as the space asks.
        """
        self._maintenance.export(path, format)

    def verify(self) -> CheckReport:
        """Compare the tables with the items; nothing is changed."""
        return self._maintenance.check()

    def _ready(self, side: Side, exact: bool | None, retriever: str | None) -> tuple[SearchSnapshot, bool]:
        """Return the present state, with an index or one on its way where it is wanted, and whether to compare all."""
        snapshot = self._state.snapshot(retriever)
        gallery = snapshot.galleries[side]
        if exact or (exact is None and len(gallery) < APPROXIMATE_FROM):
            return snapshot, True
        if gallery.wants_index:
            self._state.build_index(side, retriever, wait=exact is False)
            snapshot = self._state.snapshot(retriever)
        return snapshot, False

    def _find_picture(self, name: str) -> Path | None:
        path = self._state.root.given(name)
        return path if path.is_file() else None
