"""Rankings: by points, by hash codes scored again, and two rankings joined into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from diptych.codes import asymmetric_scores, unpack_signs
from diptych.collection.search.encoded_query import EncodedQuery, EncodedTerm
from diptych.collection.search.gallery import Gallery, content_of, top_rows
from diptych.collection.storage.retriever_protocol import HashCodeRetrieverProtocol, RetrieverProtocol, Side
from diptych.errors import InvalidInputError

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
        make = self.source.images_to_outputs if side == "image" else self.source.texts_to_outputs
        return np.asarray(make(np.asarray(features, dtype=np.float32)))

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
            known = np.array([content_of(item, place) for item, place in gallery.found(first.tolist())])
            scores = self._outputs_or_bits(codes, known.tolist(), side) @ query[0]
        # A matrix product rounds equal rows differently by where they stand: with one score they keep their order.
        _, one, which = np.unique(known, axis=0, return_index=True, return_inverse=True)
        return np.concatenate([first[np.argsort(-scores[one][which.ravel()], kind="stable")], deeper])

    def _outputs_or_bits(self, codes: AnyArray, contents: Sequence[str], side: Side) -> FloatArray:
        """Return the outputs of candidates, their bits where there are no features, all of unit length."""
        known = unit_rows(unpack_signs(codes, 8 * codes.shape[1]))
        found = self.features(side, list(dict.fromkeys(contents)))
        rows = [row for row, content in enumerate(contents) if content in found]
        if rows:
            outputs = self.outputs(side, np.stack([found[contents[row]] for row in rows]))
            known[rows] = _widened(unit_rows(outputs), known.shape[1])
        return known


def _combined(terms: Sequence[EncodedTerm], width: int) -> FloatArray:
    """Return the sum of the outputs of all terms as one row; each has unit length, for the sides differ in scale."""
    query = np.zeros((1, width))
    for term in terms:
        # An item whose features are gone still has its bits.
        outputs = unpack_signs(term.point, width) if term.outputs is None else term.outputs
        query += term.weight * _widened(unit_rows(outputs.astype(np.float64)), width)
    return query


def _widened(outputs: FloatArray, width: int) -> FloatArray:
    """Add zero columns for the bits that pad the last byte, which say nothing."""
    return np.pad(outputs, ((0, 0), (0, width - outputs.shape[1])))


@dataclass(frozen=True)
class PointRanking:
    """Ranks the rows of a gallery for a query, all of them or those of the ``allowed`` items of each part."""

    query: EncodedQuery
    allowed: Sequence[BoolArray] | None
    exact: bool
    reranking: Reranking | None = None

    def nearest(self, k: int) -> IntArray:
        """Return the rows of the ``k`` best, best first; fewer where there are fewer."""
        if self.reranking is None:
            return self._nearest(k)
        # As deep for every page, so that pages fit together.
        rows = self._nearest(max(k, self.reranking.depth))
        return self.reranking.ordered(rows, self.query.terms, self.query.gallery, self.query.target)[:k]

    def _nearest(self, k: int) -> IntArray:
        gallery = self.query.gallery
        if not len(gallery):
            return np.zeros(0, dtype=np.int64)
        k = min(k, len(gallery))
        if self.query.vector is not None:
            rows = gallery.search(self.query.vector, k, allowed=self.allowed, exact=self.exact)[0][0]
            return np.asarray(rows[rows >= 0])
        usable = gallery.rows_among(self.allowed)
        scores = self.query.scores(gallery.vectors(usable))
        return np.asarray(usable[top_rows(scores, gallery.orders(usable), k)])


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
