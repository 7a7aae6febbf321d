"""How stored points are scored against queries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from diptych.arrays import AnyArray, FloatArray, row_blocks, unit_rows
from diptych.codes import hamming_distances
from diptych.space import Direction, IndexForm, Space

_LINEAR = ("cosine", "pearson", "covariance", "dot")
_COSINES = ("cosine", "pearson")
_ENTRIES_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Scoring:
    """The scores of one space, in the form that is fastest to compute.

    In a *linear* space (cosine, Pearson, covariance, dot) a score is an inner product of prepared vectors, so gallery
    points are kept prepared and several query terms add up to one query vector. Other spaces keep points as they are.
    """

    space: Space
    direction: Direction

    @cached_property
    def is_linear(self) -> bool:
        """Whether scores are inner products of prepared vectors."""
        return self.space.name in _LINEAR and self.space.split is None

    @property
    def is_cosine(self) -> bool:
        """Whether scores are cosines, so that those of a combined query read like those of a single one."""
        return self.is_linear and self.space.name in _COSINES

    @property
    def index_metric(self) -> Literal["inner_product", "l2"] | None:
        """The metric of an approximate index, or None where only exact search serves the space."""
        if self.is_linear:
            return "inner_product"
        return "l2" if self.space.name == "euclidean" and self.space.split is None else None

    @property
    def is_codes(self) -> bool:
        """Whether points are packed binary codes, compared by Hamming distance."""
        return self.space.name == "hamming" and self.space.split is None

    @property
    def is_symmetric(self) -> bool:
        """Whether a score is the same from whichever side is asked, so that one gallery serves both."""
        return self.index_metric is not None or self.is_codes

    @cached_property
    def _form(self) -> IndexForm | None:
        return self.space.indexable(self.direction) if self.is_linear else None

    @property
    def is_engine_score(self) -> bool:
        """Whether the inner product of an index is the score itself."""
        return self.is_linear and self.space.name != "covariance"

    def stored(self, points: AnyArray) -> AnyArray:
        """Return gallery points as they are kept."""
        if points.dtype == np.uint8:
            return points
        kept = points if self._form is None else self._form.gallery(points)
        return np.ascontiguousarray(kept, dtype=np.float32)

    def asked(self, points: AnyArray) -> AnyArray:
        """Return query points as they are compared with kept ones."""
        if self._form is None:
            return points
        return np.ascontiguousarray(self._form.queries(points), dtype=np.float32)

    def combined(self, asked: AnyArray, weights: FloatArray) -> FloatArray:
        """Return one query vector for several weighted terms of a linear space: along Σ wᵢ·uᵢ, all of unit length."""
        return np.asarray(unit_rows((weights @ unit_rows(asked))[None, :]), dtype=np.float32)

    def scores(self, asked: AnyArray, kept: AnyArray) -> FloatArray:
        """Return the (queries, kept rows) matrix of scores; the caller blocks the queries."""
        if self.is_linear:
            products = asked @ kept.T
            # Dividing by one would read and write every score once more.
            return np.asarray(products / kept.shape[-1] if self.space.name == "covariance" else products)
        if self.index_metric == "l2":
            return self._distances(asked, kept)
        if self.is_codes:
            return -hamming_distances(asked, kept).astype(np.float32)
        return self.space.compare(asked, kept, self.direction)

    def paired_scores(self, asked: AnyArray, kept: AnyArray) -> FloatArray:
        """Return the scores of each query with its own rows: (queries, d) and (queries, k, d) give (queries, k)."""
        if self.is_linear:
            return np.asarray(np.einsum("qd,qkd->qk", asked, kept) / self._divisor(kept))
        return np.asarray(-((kept - asked[:, None, :]) ** 2).sum(axis=2, dtype=np.float64))

    def _divisor(self, kept: AnyArray) -> float:
        return float(kept.shape[-1]) if self.space.name == "covariance" else 1.0

    @staticmethod
    def _distances(asked: AnyArray, kept: AnyArray) -> FloatArray:
        # Differences instead of the expansion |q|² − 2qg + |g|²: far from the origin float32 cannot afford that.
        scores = np.empty((len(asked), len(kept)))
        for rows in row_blocks(len(kept), _ENTRIES_AT_ONCE // (16 * max(1, kept.shape[1]))):
            for number, query in enumerate(asked):
                difference = kept[rows] - query
                scores[number, rows] = -np.einsum("gd,gd->g", difference, difference)
        return scores
