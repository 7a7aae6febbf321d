"""Recall of the first items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray
from diptych.metrics.measure import Measure, check_cutoff
from diptych.metrics.precision import expected_hits
from diptych.metrics.ranked_groups import RankedGroups


@dataclass(frozen=True)
class Recall(Measure):
    """The share of a query's relevant items that is found among the first ``cutoff`` items.

    Exact in expectation under ties (McSherry & Najork, ECIR 2008). Not to be confused with
    :class:`~diptych.metrics.RecallAtK`, which the captioning literature also calls recall and which asks for one hit
    only. Use this one when all relevant items matter.

    >>> from diptych.metrics import Recall, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7]], relevance, [Recall(1)])[Recall(1)]
    0.5
    """

    cutoff: int

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)

    @property
    def label(self) -> str:
        """``recall@k (share)``."""
        return f"recall@{self.cutoff} (share)"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return cast(FloatArray, expected_hits(groups, self.cutoff) / np.maximum(groups.n_relevant, 1))
