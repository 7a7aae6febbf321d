"""The whole cumulative match characteristic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray
from diptych.metrics.curve import Curve, CurvePoints
from diptych.metrics.first_rank import first_rank_distribution
from diptych.metrics.ranked_groups import RankedGroups


@dataclass(frozen=True)
class CMCCurve(Curve):
    """The share of queries whose first relevant item has rank ≤ k, for every k; exact in expectation under ties.

    Its value at k is :class:`~diptych.metrics.CMC` of k.

    >>> from diptych.metrics import CMCCurve, SameLabel, evaluate_scores
    >>> result = evaluate_scores([[0.5, 0.5, 0.1]], SameLabel(["cat"], ["cat", "dog", "dog"]), [CMCCurve()])
    >>> result[CMCCurve()].y
    array([0.5, 1. , 1. ])
    """

    @property
    def label(self) -> str:
        """``CMC curve``."""
        return "CMC curve"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return the expected number of queries that match first at each rank."""
        return first_rank_distribution(groups)

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return matched queries against rank."""
        matched = np.minimum(np.cumsum(total) / n_queries, 1.0)
        return CurvePoints(np.arange(1.0, len(total) + 1), matched, "rank", "matched queries")
