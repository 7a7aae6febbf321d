"""The nearest codes, scored again by real numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, unit_rows
from diptych.codes import asymmetric_scores, unpack_signs
from diptych.collection.asked_term import AskedTerm
from diptych.collection.code_source import CodeSource
from diptych.collection.contract import PointSource, Side
from diptych.collection.gallery import Gallery
from diptych.errors import InvalidInputError

RerankBy = Literal["codes", "features"]
FetchFeatures = Callable[[Side, Sequence[str]], Mapping[str, AnyArray]]

_WAYS: tuple[RerankBy, RerankBy] = ("codes", "features")


@dataclass(frozen=True)
class Reranking:
    """Puts the first ``depth`` of a ranking by Hamming distance into the order of finer scores.

    Distances of short codes are a few whole numbers, so that many items share one. The outputs of the query before the
    sign also say how sure each bit is. With q = Σ wᵢ·dᵢ/‖dᵢ‖ over the outputs dᵢ of the query's terms, a candidate
    scores

    - by ``codes``: q·b with its bits b ∈ {−1, +1}, which asks nothing but the stored code (asymmetric distance);
    - by ``features``: q·d/‖d‖ with its own outputs d, made from its stored features, which are read for this; what has
      none is scored by its bits.

    Equal scores keep the order of the codes, and what lies deeper than ``depth`` stays where it is. Gordo et al.,
    "Asymmetric distances for binary embeddings", TPAMI 2014.
    """

    depth: int
    by: RerankBy
    source: CodeSource
    features: FetchFeatures

    @classmethod
    def of(cls, depth: int, by: RerankBy, source: PointSource, features: FetchFeatures) -> Reranking:
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
        return cls(depth, by, cast(CodeSource, source), features)

    def outputs(self, side: Side, features: AnyArray) -> FloatArray:
        """Return the real outputs of rows of features."""
        make = self.source.images_to_outputs if side == "image" else self.source.texts_to_outputs
        return np.asarray(make(np.asarray(features, dtype=np.float32)))

    def stored_outputs(self, side: Side, content: str) -> FloatArray | None:
        """Return the real outputs of something stored, as one row, or None where its features are not."""
        found = self.features(side, [content])
        return self.outputs(side, found[content][None, :]) if content in found else None

    def ordered(self, rows: IntArray, terms: Sequence[AskedTerm], gallery: Gallery, side: Side) -> IntArray:
        """Return the rows of a ranking by codes in their new order."""
        first, deeper = rows[: self.depth], rows[self.depth :]
        if len(first) < 2:
            return rows
        codes = gallery.vectors[first]
        query = _combined(terms, 8 * codes.shape[1])
        if self.by == "codes":
            scores: FloatArray = asymmetric_scores(query, codes)[0]
        else:
            scores = self._outputs_or_bits(codes, [gallery.hashes[row] for row in first], side) @ query[0]
        return np.concatenate([first[np.argsort(-scores, kind="stable")], deeper])

    def _outputs_or_bits(self, codes: AnyArray, contents: Sequence[str], side: Side) -> FloatArray:
        """Return the outputs of candidates, their bits where there are no features, all of unit length."""
        known = unit_rows(unpack_signs(codes, 8 * codes.shape[1]))
        found = self.features(side, list(dict.fromkeys(contents)))
        rows = [row for row, content in enumerate(contents) if content in found]
        if rows:
            outputs = self.outputs(side, np.stack([found[contents[row]] for row in rows]))
            known[rows] = _widened(unit_rows(outputs), known.shape[1])
        return known


def _combined(terms: Sequence[AskedTerm], width: int) -> FloatArray:
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
