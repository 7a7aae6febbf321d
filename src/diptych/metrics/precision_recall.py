"""Precision and recall: of the first items, at every scope, and as curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.measure import Curve, CurvePoints, CutoffMeasure, check_cutoff, effective_cutoff
from diptych.metrics.tie_groups import RankedGroups


@dataclass(frozen=True)
class Precision(CutoffMeasure):
    """The share of relevant items among the first ``cutoff`` items; a cutoff beyond the gallery means all of it.

    In expectation under ties a group that the cutoff divides adds its relevant items in proportion to the positions
    inside (McSherry & Najork, ECIR 2008). Use it when a fixed number of answers is shown.

    >>> from diptych.metrics import Precision, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7]], relevance, [Precision(2)])[Precision(2)]
    0.5
    """

    @property
    def label(self) -> str:
        """``P@k``."""
        return f"P@{self.cutoff}"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return cast(FloatArray, expected_hits(groups, self.cutoff) / effective_cutoff(self.cutoff, groups).clip(1))


def expected_hits(groups: RankedGroups, cutoff: int) -> FloatArray:
    """Return the expected number of relevant items among the first ``cutoff`` of each query."""
    inside = groups.inside(effective_cutoff(cutoff, groups))
    return groups.sum_by_query(groups.hits * inside / groups.size)


@dataclass(frozen=True)
class Recall(CutoffMeasure):
    """The share of a query's relevant items that is found among the first ``cutoff`` items.

    Exact in expectation under ties (McSherry & Najork, ECIR 2008). Not to be confused with
    :class:`~diptych.metrics.RecallAtK`, which the captioning literature also calls recall and which asks for one hit
    only. Use this one when all relevant items matter.

    >>> from diptych.metrics import Recall, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7]], relevance, [Recall(1)])[Recall(1)]
    0.5
    """

    @property
    def label(self) -> str:
        """``recall@k (share)``."""
        return f"recall@{self.cutoff} (share)"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return cast(FloatArray, expected_hits(groups, self.cutoff) / np.maximum(groups.n_relevant, 1))


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

    label = "precision–scope"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return the summed precision at each scope."""
        return np.array([np.nansum(Precision(cutoff).compute(groups)) for cutoff in self.scopes])

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return mean precision against scope."""
        return CurvePoints(np.array(self.scopes, dtype=np.float64), total / n_queries, "scope", "precision")


@dataclass(frozen=True)
class PrecisionRecallCurve(Curve):
    """The full curve: mean precision and mean recall of the first k items for k = 1, 2, …; exact under ties.

    In expectation the hits of a query grow linearly inside a tie group, so the whole curve of all queries is kept as
    jumps of its slope. A query whose ranking is shorter than k keeps its last precision. Use it to compare methods at
    every depth; the 11-point curve of the literature is
    :class:`~diptych.metrics.InterpolatedPrecisionRecall`.

    >>> from diptych.metrics import PrecisionRecallCurve, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> curve = evaluate_scores([[0.9, 0.8, 0.7]], relevance, [PrecisionRecallCurve()])[PrecisionRecallCurve()]
    >>> curve.x.round(4).tolist(), curve.y.round(4).tolist()
    ([0.5, 0.5, 1.0], [1.0, 0.5, 0.6667])
    """

    label = "precision–recall"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return slope jumps of hits and of recall, and hits and precision of rankings that end before a scope."""
        depth = int(groups.gallery.max())
        density = groups.hits / groups.size
        shares = density / groups.n_relevant[groups.query]
        ends = groups.before + groups.size
        precision = groups.n_relevant / np.maximum(groups.gallery, 1)
        return np.stack(
            [
                _at(groups.before, density, depth) - _at(ends, density, depth),
                _at(groups.before, shares, depth) - _at(ends, shares, depth),
                _at(groups.gallery, groups.n_relevant, depth),
                _at(groups.gallery, precision, depth),
            ]
        )

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return mean precision against mean recall."""
        hits, recall = np.cumsum(np.cumsum(total[:2, :-1], axis=1), axis=1)
        ended_hits, ended_precision = np.cumsum(total[2:, :-1], axis=1)
        precision = (hits - ended_hits) / np.arange(1, len(hits) + 1) + ended_precision
        return CurvePoints(np.minimum(recall / n_queries, 1.0), precision / n_queries, "recall", "precision")


def _at(positions: IntArray, weights: FloatArray | IntArray, depth: int) -> FloatArray:
    return cast(FloatArray, np.bincount(positions, weights=weights, minlength=depth + 1))
