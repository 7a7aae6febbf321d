"""The interpolated precision–recall curve of the retrieval literature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.metrics.curve import Curve, CurvePoints
from diptych.metrics.measure import check_cutoff
from diptych.metrics.ranked_groups import RankedGroups
from diptych.metrics.tie_breaking import break_ties

_TOLERANCE = 1e-12


@dataclass(frozen=True)
class InterpolatedPrecisionRecall(Curve):
    """Interpolated precision at evenly spaced recall levels, 11 by default, averaged over queries.

    The value at recall r is max{P(i) : recall(i) ≥ r}, with a tolerance of 1e-12 so that 3 of 10 items reach 0.3
    (Costa Pereira et al., TPAMI 2014; Menon et al., SDM 2015). The mean of the 11 values is not average precision. A
    maximum has no simple expectation under ties: queries whose ties matter are averaged over ``samples`` random orders
    drawn with ``seed``.

    >>> from diptych.metrics import InterpolatedPrecisionRecall, SameLabel, evaluate_scores
    >>> curve = InterpolatedPrecisionRecall(levels=3)
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7]], relevance, [curve])[curve].y.round(4)
    array([1.    , 1.    , 0.6667])
    """

    levels: int = 11
    samples: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        check_cutoff(self.samples, name="samples")
        check_cutoff(self.levels, name="levels")
        if self.levels < 2:
            raise InvalidInputError(f"levels must be at least 2, from recall 0 to recall 1, got {self.levels}")

    @property
    def label(self) -> str:
        """``n-point interpolated precision–recall``."""
        return f"{self.levels}-point interpolated precision–recall"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return the summed interpolated precision at each level."""
        undecided = groups.sum_by_query(groups.undecided.astype(np.int64)) > 0
        decided = break_ties(groups.select(~undecided & (groups.n_relevant > 0)), "optimistic")
        total = self._interpolate(decided)
        if undecided.any():
            tied = groups.select(undecided)
            for sample in range(self.samples):
                order = break_ties(tied, "random", self.seed + sample)
                total = total + self._interpolate(order) / self.samples
        return total

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return mean interpolated precision against recall."""
        return CurvePoints(self._recall(), total / n_queries, "recall", "interpolated precision")

    def _recall(self) -> FloatArray:
        return np.linspace(0.0, 1.0, self.levels)

    def _interpolate(self, order: RankedGroups) -> FloatArray:
        """Sum the curves of rankings without ties.

        Precision peaks at relevant items, so only they are looked at: the best precision between the items that reach
        one level and the next, then the best from each level onwards.
        """
        if not order.n_queries:
            return np.zeros(self.levels)
        precision = (order.relevant_before + 1) / (order.before + 1)
        needed = np.ceil((self._recall() - _TOLERANCE) * order.n_relevant[:, None]).astype(np.int64).clip(1)
        starts = order.first[:, None] + needed - 1
        between = np.maximum.reduceat(precision, starts.ravel()).reshape(starts.shape)
        best = np.maximum.accumulate(between[:, ::-1], axis=1)[:, ::-1]
        return cast(FloatArray, best.sum(axis=0))
