"""Mean precision against mean recall at every scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.metrics.curve import Curve, CurvePoints
from diptych.metrics.ranked_groups import RankedGroups


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

    @property
    def label(self) -> str:
        """``precision–recall``."""
        return "precision–recall"

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
