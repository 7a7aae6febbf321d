"""Reciprocal rank of the first relevant item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray
from diptych.metrics import Measure, RankedGroups


@dataclass(frozen=True)
class RR(Measure):
    """One over the rank of the first relevant item; its mean over queries is MRR.

    Under ties the first of r relevant items among n stands at position j of the group with probability
    C(n − j, r − 1) / C(n, r), and with N items before the group

        E[RR] = Σ_{j = 1 … n − r + 1} C(n − j, r − 1) / C(n, r) · 1 / (N + j)

    which is exact (McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence
    of tied scores", ECIR 2008). Use it where one right answer ends the search.

    >>> from diptych.benchmark.exchange import RR
    >>> from diptych.metrics import SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "dog"])
    >>> evaluate_scores([[0.9, 0.5, 0.5], [0.9, 0.5, 0.5]], relevance, [RR()])[RR()]
    0.75
    """

    @property
    def label(self) -> str:
        """``MRR``."""
        return "MRR"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        values = np.zeros(groups.n_queries)
        for index in groups.first:
            share = _first_positions(int(groups.size[index]), int(groups.hits[index]))
            ranks = groups.before[index] + np.arange(1, len(share) + 1)
            values[groups.query[index]] = float(np.sum(share / ranks))
        return values


def _first_positions(size: int, hits: int) -> FloatArray:
    """Return the probability that the first of ``hits`` relevant items stands at position 1, 2, … of ``size``."""
    drawn = np.arange(size - hits, dtype=np.float64)
    missed = np.concatenate([[1.0], np.cumprod((size - hits - drawn) / (size - drawn))])
    found = hits / (size - np.arange(size - hits + 1, dtype=np.float64))
    return cast(FloatArray, missed * found)
