"""What a search looks at, and its rankings: by points and regions, by hash codes scored again, by words, and joined."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import HashCodeRetrieverProtocol, PointKind, RetrieverProtocol, Side
from diptych.collection.searching.encoded_query import EncodedQuery, EncodedTerm, QueryEmbeddingCache
from diptych.collection.searching.options import RerankBy
from diptych.collection.sought_words import SoughtWords, folded_words
from diptych.collection.store.columns import Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id, picture_texts
from diptych.collection.store.points import known_encoder, point_table, read_features
from diptych.collection.store.words import Phrase, WordHits, find_words, phrases_of
from diptych.collection.vectors.neighbours import Neighbours, VectorIndex
from diptych.encoders.image.picture_parts import REGIONS, PictureRegion, PictureText
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection.root import Root
    from diptych.collection.store.models import Model

FUSED = 1000
"""How deep two rankings are joined; the same for every page, so that pages fit together."""

MAX_CHECKED = 100
RANK_DAMPING = 60


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
                # Without a condition the index over contents answers, which is far smaller than the points.
                newer = f" WHERE id > {last}" if 0 < last < newest else ""
                contents = db.ids(f"SELECT content FROM {table}{newer}")
                size = max(len(mask), int(contents.max(initial=0)) + 1)
                mask = np.concatenate([mask, np.zeros(size - len(mask), dtype=bool)])
                mask[contents] = True
                # What was returned before stays as it is.
                self._pointed[kind] = newest, mask
            return newest, mask

    def count(self, view: SearchView, kind: PointKind) -> int:
        """Return how many items, or captions for kind ``text``, have a point."""
        newest, pointed = self.pointed(view.db, kind)
        columns, key = view.columns, ("count", self.model.id, kind, newest)
        with columns.lock:
            known: int | None = columns.remembered.get(key)
            if known is None:
                contents = columns.caption_content if kind == "text" else columns.item_content
                # No item has the content 0.
                known = columns.remembered[key] = int(np.count_nonzero(_taken(pointed, contents)))
            return known


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
    def ids(self) -> IntArray:
        """The ids of filtered entries."""
        assert self.items is not None
        if self.side == "image":
            ids = np.flatnonzero(self.items)
        else:
            ids = np.flatnonzero(_taken(self.items, self.view.columns.caption_item))
        return ids[self._have_points(self.contents_of(ids))]

    @cached_property
    def contents(self) -> BoolArray | None:
        """Which contents are those of filtered entries; None without a filter."""
        if self.items is None:
            return None
        contents = np.zeros(len(self.view.searched.pointed(self.view.db, self.side)[1]), dtype=bool)
        contents[self.contents_of(self.ids)] = True
        return contents

    @cached_property
    def count(self) -> int:
        """How many entries there are."""
        return self.view.searched.count(self.view, self.side) if self.items is None else len(self.ids)

    @cached_property
    def n_with_regions(self) -> int:
        """How many entries have regions."""
        if self.region_index is None:
            return 0
        if self.items is None:
            return self.view.searched.count(self.view, "region")
        pointed = self.view.searched.pointed(self.view.db, "region")[1]
        return int(np.count_nonzero(_taken(pointed, self.contents_of(self.ids))))

    def are_entries(self, ids: IntArray) -> BoolArray:
        """Return which ids of items or captions are those of entries."""
        there = self._have_points(self.contents_of(ids))
        return there if self.items is None else there & _taken(self.items, self.item_ids(ids))

    def _have_points(self, contents: IntArray) -> BoolArray:
        return _taken(self.view.searched.pointed(self.view.db, self.side)[1], contents)

    def of_contents(self, contents: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entries of some contents, and the place of the content of each."""
        order = np.argsort(contents)
        table = "item" if self.side == "image" else "caption"
        condition, values = self.view.db.among("content", contents)
        rows = self.view.db.rows(f"SELECT id, content FROM {table} WHERE {condition}", values)
        found = np.array(rows, dtype=np.int64).reshape(-1, 2)
        found = found[self.are_entries(found[:, 0])]
        return found[:, 0], order[np.searchsorted(contents[order], found[:, 1])]

    def contents_of(self, entries: IntArray) -> IntArray:
        """Return the content of each id, 0 where no entry has that id."""
        columns = self.view.columns
        return _taken(columns.item_content if self.side == "image" else columns.caption_content, entries)

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
        return entries if self.side == "image" else _taken(self.view.columns.caption_item, entries)


def _taken(array: AnyArray, places: IntArray) -> AnyArray:
    """Return the values of an array at some places, 0 or False beyond its end."""
    if not len(array):
        return np.zeros(len(places), dtype=array.dtype)
    found = array.take(places, mode="clip")
    if len(places) and places.max() >= len(array):
        found[places >= len(array)] = 0
    return found


def best_ids(ids: IntArray, scores: FloatArray, k: int) -> IntArray:
    """Return the ids with the ``k`` largest scores, best first; equal scores by id.

    >>> best_ids(np.array([7, 5, 6]), np.array([3.0, 1.0, 3.0]), 2)
    array([6, 7])
    """
    return np.asarray(ids[np.lexsort((ids, -scores))][:k])


@dataclass(frozen=True)
class Reranking:
    """Puts the first ``depth`` of a ranking by Hamming distance into the order of finer scores.

    The outputs of the query before the sign say how sure each bit is. With q = Σ wᵢ·dᵢ/‖dᵢ‖ over the outputs dᵢ of the
    query's terms, a candidate scores by ``codes`` q·b with its bits b ∈ {−1, +1} (Gordo et al., "Asymmetric distances
    for binary embeddings", TPAMI 2014), by ``features`` q·d/‖d‖ with its own outputs d, made from its stored features;
    without these it is scored by its bits. Equal scores keep the order of the codes.
    """

    depth: int
    by: RerankBy
    entries: Entries

    def __post_init__(self) -> None:
        source = self.entries.view.searched.retriever
        if source.space.name != "hamming" or not hasattr(source, "images_to_outputs"):
            raise InvalidInputError(
                f"the points of the retriever {source.name!r} are no binary codes with real outputs behind them, so "
                "there is nothing to score again; leave rerank out"
            )

    @property
    def source(self) -> HashCodeRetrieverProtocol:
        """The retriever, which makes outputs of features."""
        return cast(HashCodeRetrieverProtocol, self.entries.view.searched.retriever)

    def outputs(self, side: Side, features: AnyArray) -> FloatArray:
        """Return the real outputs of rows of features."""
        make = self.source.images_to_outputs if side == "image" else self.source.texts_to_outputs
        return np.asarray(make(np.asarray(features, dtype=np.float32)))

    def stored_outputs(self, side: Side, contents: IntArray) -> tuple[IntArray, FloatArray | None]:
        """Return the contents among some that have stored features, and the real outputs of these."""
        view = self.entries.view
        encoder = known_encoder(view.db, view.searched.model.encoder(side), side)
        if encoder is None:
            return contents[:0], None
        found, features = read_features(view.db, encoder, contents)
        return found, self.outputs(side, features) if len(found) else None

    def ordered(self, ranked: IntArray, terms: Sequence[EncodedTerm]) -> IntArray:
        """Return the entries of a ranking by codes in their new order."""
        # Imported lazily: few searches are ranked again.
        from diptych.codes import asymmetric_scores, unpack_signs

        first, deeper = ranked[: self.depth], ranked[self.depth :]
        if len(first) < 2:
            return ranked
        codes = self.entries.vectors(first)
        width = 8 * codes.shape[1]
        query = np.zeros((1, width))
        for term in terms:
            # An item whose features are gone still has its bits. The sides differ in scale, so each has unit length.
            outputs = unpack_signs(term.point, width) if term.outputs is None else term.outputs
            query += term.weight * _widened(unit_rows(outputs.astype(np.float64)), width)
        known: AnyArray
        if self.by == "codes":
            known, scores = codes, asymmetric_scores(query, codes)[0]
        else:
            known = self.entries.contents_of(first)
            scores = self._outputs_or_bits(codes, known) @ query[0]
        # A matrix product rounds equal rows differently by where they stand: with one score they keep their order.
        _, one, which = np.unique(known, axis=0, return_index=True, return_inverse=True)
        return np.concatenate([first[np.argsort(-scores[one][which.ravel()], kind="stable")], deeper])

    def _outputs_or_bits(self, codes: AnyArray, contents: IntArray) -> FloatArray:
        """Return the outputs of candidates, their bits where there are no features, all of unit length."""
        from diptych.codes import unpack_signs

        known = unit_rows(unpack_signs(codes, 8 * codes.shape[1]).astype(np.float64))
        found, outputs = self.stored_outputs(self.entries.side, np.unique(contents))
        if outputs is not None:
            is_there = np.isin(contents, found)
            rows = np.searchsorted(found, contents[is_there])
            known[is_there] = _widened(unit_rows(outputs.astype(np.float64)), known.shape[1])[rows]
        return known


def _widened(outputs: FloatArray, width: int) -> FloatArray:
    """Add zero columns for the bits that pad the last byte, which say nothing."""
    return np.pad(outputs, ((0, 0), (0, width - outputs.shape[1])))


@dataclass(frozen=True)
class PointRanking:
    """Ranks entries for a query by their points; with regions, a picture ranks by the better of itself and its best."""

    query: EncodedQuery
    entries: Entries
    exact: bool
    uses_regions: bool
    reranking: Reranking | None = None

    def nearest(self, k: int) -> IntArray:
        """Return the ``k`` best entries, best first; fewer where there are fewer."""
        if self.reranking is None:
            return self._nearest(k)
        # As deep for every page, so that pages fit together.
        return self.reranking.ordered(self._nearest(max(k, self.reranking.depth)), self.query.terms)[:k]

    def _nearest(self, k: int) -> IntArray:
        k = min(k, self.entries.count)
        if not k:
            return np.zeros(0, dtype=np.int64)
        # Of filtered contents each has an entry; of all, some may belong to items that were removed.
        filtered = self.entries.contents
        wanted = k if filtered is None else min(k, int(np.count_nonzero(filtered)))
        while True:
            found = self._nearest_contents(wanted)
            ids, places = self.entries.of_contents(found.contents[0])
            if len(ids) >= k or filtered is not None or (found.contents < 0).any():
                return best_ids(ids, found.scores[0][places], k)
            wanted *= 4

    def _nearest_contents(self, k: int) -> Neighbours:
        """Return the ``k`` nearest contents, −1 padded; of a picture the best region may count."""
        entries, query, db = self.entries, self.query, self.entries.view.db
        if query.vector is None:
            return entries.index.nearest_by(db, lambda _, rows: query.scores(rows)[None, :], k, entries.contents)
        found = entries.index.nearest(db, query.vector, k, entries.contents, exact=self.exact)
        if self._region_index is None:
            return found
        of_regions = self._region_index.nearest(db, query.vector, k, entries.contents, exact=self.exact)
        # Whether there are no more is told by the pictures: few of them may have regions.
        has_regions = of_regions.contents >= 0
        both = np.append(found.contents, of_regions.contents[has_regions])
        contents, which = np.unique(both, return_inverse=True)
        scores = np.full(len(contents), -np.inf)
        np.maximum.at(scores, which, np.append(found.scores, of_regions.scores[has_regions]))
        return Neighbours(contents[None, :], np.zeros_like(contents[None, :]), scores[None, :])

    @property
    def _region_index(self) -> VectorIndex | None:
        return self.entries.region_index if self.uses_regions else None

    @property
    def is_exact(self) -> bool:
        """Whether everything is compared."""
        if self.exact or self.query.vector is None or not self.entries.count:
            return True
        indexes = [self.entries.index, *([] if self._region_index is None else [self._region_index])]
        return all(index.compares_all(self.entries.view.db, self.entries.count) for index in indexes)

    def best_parts(self, ranked: IntArray) -> tuple[AnyArray, list[PictureRegion | None]]:
        """Return the points by which some entries answer the query, and the regions of pictures whose these are."""
        whole = self.entries.vectors(ranked)
        regions: list[PictureRegion | None] = [None] * len(ranked)
        if self._region_index is None or self.query.vector is None or not len(ranked):
            return whole, regions
        contents = self.entries.contents_of(ranked)
        owners, parts, points = self._region_index.vectors(self.entries.view.db, np.unique(contents))
        best = np.array(whole)
        of_whole, of_parts = self.query.scores(whole), self.query.scores(points)
        for place, content in enumerate(contents.tolist()):
            start, end = np.searchsorted(owners, [content, content + 1]).tolist()
            if start < end and of_parts[start:end].max() > of_whole[place]:
                row = start + int(of_parts[start:end].argmax())
                best[place], regions[place] = points[row], REGIONS[int(parts[row])]
        return best, regions


@dataclass(frozen=True)
class WordRanking:
    """Ranks entries by the words that their items hold."""

    entries: Entries

    def with_most(self, words: str, *, captions: bool = True) -> WordHits:
        """Return the entries with the most of some words, best first."""
        each = [phrases_of(word) for word in dict.fromkeys(folded_words(words))]
        return self._found(each, needs_all=False, captions=captions)

    def named(self, sought: SoughtWords) -> tuple[SoughtWords, IntArray]:
        """Return what holds all the words, or else the names among them outside of captions; best first."""
        forms = [[phrase for form in sought.forms(word) for phrase in phrases_of(form)] for word in sought.words]
        # Where so many have the words, these say nothing.
        found = self._found(forms, needs_all=True, max_found=FUSED)
        every = found.ids
        if sought.phrases or sought.together:
            every = every[:MAX_CHECKED]
            return sought, every[[sought.has_phrases(*known) for known in self.entries.said_of(every)]]
        is_nowhere = len(forms) == 1 and not found.n_found
        if len(every) or is_nowhere or not sought.telling or self.entries.side == "text":
            return sought, every
        rows = self.with_most(" ".join(sought.telling), captions=False).ids[:MAX_CHECKED]
        held = [sought.names_in(*known) for known in self.entries.said_of(rows)]
        most = max(held, key=len, default=frozenset())
        return replace(sought, words=tuple(sorted(most))), rows[[bool(most) and most <= one for one in held]]

    def _found(
        self, words: list[list[Phrase]], *, needs_all: bool, captions: bool = True, max_found: int | None = None
    ) -> WordHits:
        columns = self.entries.view.columns
        return find_words(
            self.entries.view.db,
            words,
            self.entries.are_entries,
            needs_all=needs_all,
            n_rows=columns.n_items + columns.n_captions,
            of_captions=self.entries.side == "text",
            in_captions=captions,
            max_found=max_found,
        )


def fuse_rankings(by_points: Sequence[int], by_words: Sequence[int], share: float) -> list[int]:
    """Join two rankings by reciprocal rank: an item gains (1 − share)/(60 + rank) and share/(60 + rank).

    Equal gains keep the order of the first. Cormack et al., "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009.

    >>> fuse_rankings([1, 2, 3], [3, 4], 0.5)
    [3, 1, 2, 4]
    """
    gains: dict[int, float] = {}
    for ranking, weight in ((by_points, 1 - share), (by_words, share)):
        for rank, entry in enumerate(ranking, start=1):
            gains[entry] = gains.get(entry, 0.0) + weight / (RANK_DAMPING + rank)
    return sorted(gains, key=lambda entry: -gains[entry])
