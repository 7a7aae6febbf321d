"""Precision of the first items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from diptych.arrays import FloatArray
from diptych.metrics.measure import Measure, check_cutoff, scope
from diptych.metrics.ranked_groups import RankedGroups


@dataclass(frozen=True)
class Precision(Measure):
    """The share of relevant items among the first ``cutoff`` items; a cutoff beyond the gallery means all of it.

    In expectation under ties a group that the cutoff divides adds its relevant items in proportion to the positions
    inside (McSherry & Najork, ECIR 2008). Use it when a fixed number of answers is shown.

    >>> from diptych.metrics import Precision, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7]], relevance, [Precision(2)])[Precision(2)]
    0.5
    """

    cutoff: int

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)

    @property
    def label(self) -> str:
        """``P@k``."""
        return f"P@{self.cutoff}"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return cast(FloatArray, expected_hits(groups, self.cutoff) / scope(self.cutoff, groups).clip(1))


def expected_hits(groups: RankedGroups, cutoff: int) -> FloatArray:
    """Return the expected number of relevant items among the first ``cutoff`` of each query."""
    inside = groups.inside(scope(cutoff, groups))
    return groups.sum_by_query(groups.hits * inside / groups.size)
