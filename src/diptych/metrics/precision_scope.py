"""Precision against the number of items shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.metrics.curve import Curve, CurvePoints
from diptych.metrics.measure import check_cutoff
from diptych.metrics.precision import Precision
from diptych.metrics.ranked_groups import RankedGroups


@dataclass(frozen=True)
class PrecisionScope(Curve):
    """Mean precision of the first k items against k, the scope; exact in expectation under ties.

    The default scopes are 100, 200, …, 1000. Its value at k is :class:`~diptych.metrics.Precision` of k.

    >>> from diptych.metrics import PrecisionScope, SameLabel, evaluate_scores
    >>> curve = PrecisionScope(scopes=(1, 2))
    >>> evaluate_scores([[0.9, 0.8, 0.7]], SameLabel(["cat"], ["cat", "dog", "cat"]), [curve])[curve].y
    array([1. , 0.5])
    """

    scopes: tuple[int, ...] = tuple(range(100, 1001, 100))

    def __post_init__(self) -> None:
        # A list or a range is a natural way to write scopes; a tuple keeps the value hashable.
        object.__setattr__(self, "scopes", tuple(self.scopes))
        if not self.scopes:
            raise InvalidInputError("scopes is empty; give at least one")
        for cutoff in self.scopes:
            check_cutoff(cutoff, name="each scope")

    @property
    def label(self) -> str:
        """``precision–scope``."""
        return "precision–scope"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return the summed precision at each scope."""
        return np.array([np.nansum(Precision(cutoff).compute(groups)) for cutoff in self.scopes])

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return mean precision against scope."""
        return CurvePoints(np.array(self.scopes, dtype=np.float64), total / n_queries, "scope", "precision")
