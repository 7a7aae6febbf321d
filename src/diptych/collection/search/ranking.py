"""Rankings: by points, by regions of pictures, by hash codes scored again, by words, and two of them joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from diptych.codes import asymmetric_scores, unpack_signs
from diptych.collection.search.encoded_query import EncodedQuery, EncodedTerm
from diptych.collection.search.gallery import Gallery, top_rows
from diptych.collection.storage.retriever_protocol import HashCodeRetrieverProtocol, RetrieverProtocol, Side
from diptych.collection.storage.word_index import WordHits, WordIndex
from diptych.encoders.image.picture_parts import REGIONS, PictureRegion
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class RegionRanking:
    """The regions of pictures beside the pictures of a query's gallery, in a space whose scores are inner products."""

    query: EncodedQuery
    regions: Gallery
    exact: bool

    def nearest(self, k: int, allowed: Sequence[BoolArray] | None) -> tuple[IntArray, FloatArray]:
        """Return rows of pictures and scores of their regions, so many that the ``k`` pictures with the best are there.

        A picture comes once for each of its regions among these.
        """
        assert self.query.vector is not None
        # Pictures before the k-th have at most all of their regions before its best one.
        n_asked = min(k * len(REGIONS), len(self.regions))
        found, scores = self.regions.search(self.query.vector, n_asked, allowed=allowed, exact=self.exact)
        there = found[0] >= 0
        rows = self._pictures(found[0][there])
        return rows[rows >= 0], scores[0][there][rows >= 0]

    def best_parts(self, rows: IntArray) -> tuple[AnyArray, list[PictureRegion | None]]:
        """Return for some pictures the points that answer the query best, and the regions whose these are."""
        kept = np.array(self.query.gallery.vectors(rows), dtype=np.float32)
        best: list[PictureRegion | None] = [None] * len(rows)
        of_picture = self._regions_of(rows)
        places = np.flatnonzero(of_picture[:, 0] >= 0)
        if len(places):
            points = self.regions.vectors(of_picture[places].ravel())
            scores = self.query.scores(points).reshape(len(places), -1)
            is_better = scores.max(axis=1) > self.query.scores(kept[places])
            numbers = scores.argmax(axis=1)
            chosen = points.reshape(*scores.shape, -1)[np.arange(len(places)), numbers]
            kept[places[is_better]] = chosen[is_better]
            for place, number in zip(places[is_better].tolist(), numbers[is_better].tolist(), strict=True):
                best[place] = REGIONS[number]
        return kept, best

    def _pictures(self, rows: IntArray) -> IntArray:
        """Return the rows of the pictures that regions belong to; −1 where a picture has no point."""
        pictures, found = self.query.gallery, np.full(len(rows), -1, dtype=np.int64)
        for number, places, inner in self.regions.located(rows):
            owners = self.regions.blocks[number].owners[inner]
            within = pictures.blocks[number].rows_at(owners, np.zeros_like(owners))
            found[places] = np.where(within < 0, -1, within + pictures.start_of(number))
        return found

    def _regions_of(self, rows: IntArray) -> IntArray:
        """Return the rows of the regions of some pictures, a line each; −1 where a picture has none."""
        found = np.full((len(rows), len(REGIONS)), -1, dtype=np.int64)
        for number, places, inner in self.query.gallery.located(rows):
            owners, block = self.query.gallery.blocks[number].owners[inner], self.regions.blocks[number]
            first = block.rows_at(owners, np.zeros_like(owners))
            start = first[first >= 0] + self.regions.start_of(number)
            found[places[first >= 0]] = start[:, None] + np.arange(len(REGIONS))
        return found


RerankBy = Literal["codes", "features"]
FetchFeatures = Callable[[Side, Sequence[str]], Mapping[str, AnyArray]]
_WAYS: tuple[RerankBy, RerankBy] = ("codes", "features")


@dataclass(frozen=True)
class Reranking:
    """Puts the first ``depth`` of a ranking by Hamming distance into the order of finer scores.

    The outputs of the query before the sign say how sure each bit is. With q = Σ wᵢ·dᵢ/‖dᵢ‖ over the outputs dᵢ of the
    query's terms, a candidate scores by ``codes`` q·b with its bits b ∈ {−1, +1} (Gordo et al., "Asymmetric distances
    for binary embeddings", TPAMI 2014), by ``features`` q·d/‖d‖ with its own outputs d, made from its stored features;
    what has none is scored by its bits. Equal scores keep the order of the codes.
    """

    depth: int
    by: RerankBy
    source: HashCodeRetrieverProtocol
    features: FetchFeatures

    @classmethod
    def of(cls, depth: int, by: RerankBy, source: RetrieverProtocol, features: FetchFeatures) -> Reranking:
        """Return the reranking of a retriever, or say why there is none."""
        if depth < 1:
            raise InvalidInputError(f"rerank is how many of the nearest codes to score again, at least 1, got {depth}")
        if by not in _WAYS:
            raise InvalidInputError(f"rerank_by must be one of {', '.join(_WAYS)}, got {by!r}")
        if source.space.name != "hamming" or not hasattr(source, "images_to_outputs"):
            raise InvalidInputError(
                f"the points of the retriever {source.name!r} are no binary codes with real outputs behind them, so "
                "there is nothing to score again; leave rerank out"
            )
        return cls(depth, by, cast(HashCodeRetrieverProtocol, source), features)

    def outputs(self, side: Side, features: AnyArray) -> FloatArray:
        """Return the real outputs of rows of features."""
        return _real_outputs(self.source, side, features)

    def stored_outputs(self, side: Side, content: str) -> FloatArray | None:
        """Return the real outputs of something stored, as one row, or None where its features are not."""
        found = self.features(side, [content])
        return self.outputs(side, found[content][None, :]) if content in found else None

    def ordered(self, rows: IntArray, terms: Sequence[EncodedTerm], gallery: Gallery, side: Side) -> IntArray:
        """Return the rows of a ranking by codes in their new order."""
        first, deeper = rows[: self.depth], rows[self.depth :]
        if len(first) < 2:
            return rows
        codes = gallery.vectors(first)
        query = _combined(terms, 8 * codes.shape[1])
        known: AnyArray
        if self.by == "codes":
            known, scores = codes, asymmetric_scores(query, codes)[0]
        else:
            known = gallery.contents(first).astype(str)
            outputs = gallery.outputs(first, 8 * codes.shape[1])
            lacking = np.flatnonzero(np.isnan(outputs[:, 0]))
            if len(lacking):
                outputs[lacking] = self._outputs_or_bits(codes[lacking], known[lacking].tolist(), side)
            scores = outputs @ query[0]
        # A matrix product rounds equal rows differently by where they stand: with one score they keep their order.
        _, one, which = np.unique(known, axis=0, return_index=True, return_inverse=True)
        return np.concatenate([first[np.argsort(-scores[one][which.ravel()], kind="stable")], deeper])

    def _outputs_or_bits(self, codes: AnyArray, contents: Sequence[str], side: Side) -> FloatArray:
        """Return the outputs of candidates, their bits where there are no features, all of unit length."""
        known = unit_rows(unpack_signs(codes, 8 * codes.shape[1]))
        found = self.features(side, list(dict.fromkeys(contents)))
        rows = [row for row, content in enumerate(contents) if content in found]
        if rows:
            features = np.stack([found[contents[row]] for row in rows])
            known[rows] = unit_outputs(self.source, side, features, known.shape[1])
        return known


def _combined(terms: Sequence[EncodedTerm], width: int) -> FloatArray:
    """Return the sum of the outputs of all terms as one row; each has unit length, for the sides differ in scale."""
    query = np.zeros((1, width))
    for term in terms:
        # An item whose features are gone still has its bits.
        outputs = unpack_signs(term.point, width) if term.outputs is None else term.outputs
        query += term.weight * _widened(unit_rows(outputs.astype(np.float64)), width)
    return query


def unit_outputs(source: HashCodeRetrieverProtocol, side: Side, features: AnyArray, width: int) -> FloatArray:
    """Return the real outputs of rows of features as candidates are scored by them: of unit length, ``width`` wide."""
    return _widened(unit_rows(_real_outputs(source, side, features)), width)


def _real_outputs(source: HashCodeRetrieverProtocol, side: Side, features: AnyArray) -> FloatArray:
    make = source.images_to_outputs if side == "image" else source.texts_to_outputs
    return np.asarray(make(np.asarray(features, dtype=np.float32)))


def _widened(outputs: FloatArray, width: int) -> FloatArray:
    """Add zero columns for the bits that pad the last byte, which say nothing."""
    return np.pad(outputs, ((0, 0), (0, width - outputs.shape[1])))


@dataclass(frozen=True)
class PointRanking:
    """Ranks the rows of a gallery for a query, all of them or those of the ``allowed`` items of each part.

    With regions, a picture ranks by the better of itself and its best one.
    """

    query: EncodedQuery
    allowed: Sequence[BoolArray] | None
    exact: bool
    reranking: Reranking | None = None
    regions: RegionRanking | None = None

    def nearest(self, k: int) -> IntArray:
        """Return the rows of the ``k`` best, best first; fewer where there are fewer."""
        if self.reranking is None:
            return self._nearest(k)
        # As deep for every page, so that pages fit together.
        rows = self._nearest(max(k, self.reranking.depth))
        return self.reranking.ordered(rows, self.query.terms, self.query.gallery, self.query.target)[:k]

    @property
    def is_exact(self) -> bool:
        """Whether everything is compared."""
        is_exact = self.exact or not self.query.gallery.is_indexed or self.query.vector is None
        return is_exact and (self.regions is None or self.regions.exact or not self.regions.regions.is_indexed)

    def best_parts(self, rows: IntArray) -> tuple[AnyArray, Sequence[PictureRegion | None]]:
        """Return the points by which some rows answer the query, and the regions of pictures whose these are."""
        if self.regions is None or not len(rows):
            return self.query.gallery.vectors(rows), [None] * len(rows)
        return self.regions.best_parts(rows)

    def _nearest(self, k: int) -> IntArray:
        gallery = self.query.gallery
        if not len(gallery):
            return np.zeros(0, dtype=np.int64)
        k = min(k, len(gallery))
        if self.query.vector is not None:
            found, scores = gallery.search(self.query.vector, k, allowed=self.allowed, exact=self.exact)
            rows = found[0][found[0] >= 0]
            if self.regions is None:
                return np.asarray(rows)
            by_region, of_region = self.regions.nearest(k, self.allowed)
            each, both = np.concatenate([rows, by_region]), np.concatenate([scores[0][: len(rows)], of_region])
            distinct, which = np.unique(each, return_inverse=True)
            best = np.full(len(distinct), -np.inf)
            np.maximum.at(best, which, both)
            return np.asarray(distinct[top_rows(best, gallery.orders(distinct), k)])
        usable = gallery.rows_among(self.allowed)
        scores = self.query.scores(gallery.vectors(usable))
        return np.asarray(usable[top_rows(scores, gallery.orders(usable), k)])


# How deep two rankings are joined; the same for every page, so that pages fit together.
CANDIDATES = 1000
_MOST_ASKED = 64_000
_NOTHING: tuple[IntArray, FloatArray] = np.zeros(0, dtype=np.int64), np.zeros(0)


@dataclass(frozen=True)
class WordRanking:
    """Ranks the rows of a gallery by words that their items hold, all rows or those of the ``allowed`` items."""

    index: WordIndex
    gallery: Gallery
    allowed: Sequence[BoolArray] | None

    def with_most(self, words: str, *, captions: bool = True) -> IntArray:
        """Return the rows with the most of some words, best first."""
        return self._ranked(lambda n_asked: self.index.any_of(words, n_asked, captions=captions))[0]

    def with_all(self, words: Sequence[Sequence[str]], field_names: Set[str]) -> tuple[IntArray, bool]:
        """Return the rows with every one of some words, best first, and whether there are any.

        Where so many have them that they say nothing, none are returned. Each word comes in the forms of which one is
        enough; ``field_names`` are the names of metadata.
        """
        rows, is_cut = self._ranked(lambda n_asked: self.index.all_of(words, n_asked, field_names))
        return rows[:0] if is_cut else rows, len(rows) > 0

    def _ranked(self, find: Callable[[int], list[WordHits]]) -> tuple[IntArray, bool]:
        """Return the best rows, and whether there are more than these."""
        n_asked = CANDIDATES
        while True:
            hits = find(n_asked)
            rows, scores = map(np.concatenate, zip(*map(self._of_holder, hits), _NOTHING, strict=True))
            distinct, which = np.unique(rows, return_inverse=True)
            # Words that no item has any more, or that a filter leaves out, took places.
            is_short = any(len(one.keys) >= n_asked for one in hits) and len(distinct) < CANDIDATES
            if not is_short or n_asked >= _MOST_ASKED:
                break
            n_asked *= 8
        # What is said of an item in several ways counts in each of them.
        total = np.bincount(which, scores, len(distinct))
        best = distinct[np.lexsort((self.gallery.orders(distinct), -total))]
        return best[:CANDIDATES], len(best) >= CANDIDATES

    def _of_holder(self, hits: WordHits) -> tuple[IntArray, FloatArray]:
        """Return rows with their scores; a picture is as good as its best caption."""
        rows, scores = self.gallery.rows_of_hits(hits, self.allowed)
        order = np.lexsort((-scores, rows))
        distinct, first = np.unique(rows[order], return_index=True)
        return distinct, scores[order][first]


_DAMPING = 60


def fuse_rankings(by_points: Sequence[int], by_words: Sequence[int], share: float) -> list[int]:
    """Join two rankings by reciprocal rank: an item gains (1 − share)/(60 + rank) and share/(60 + rank).

    Equal gains keep the order of the first. Cormack et al., "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009.

    >>> fuse_rankings([1, 2, 3], [3, 4], 0.5)
    [3, 1, 2, 4]
    """
    rows = np.concatenate([np.asarray(ranking, dtype=np.int64) for ranking in (by_points, by_words)])
    gains = [
        weight / (_DAMPING + np.arange(1, len(ranking) + 1))
        for ranking, weight in ((by_points, 1 - share), (by_words, share))
    ]
    distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
    total = np.bincount(which, np.concatenate(gains), len(distinct))
    return [int(row) for row in distinct[np.lexsort((first, -total))]]
