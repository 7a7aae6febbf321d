"""Normalised gain as trec_eval counts it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from diptych.arrays import FloatArray
from diptych.metrics import NDCG, Measure, RankedGroups


@dataclass(frozen=True)
class LinearNDCG(Measure):
    """Normalised discounted cumulative gain where the gain is the grade itself.

        NDCG@k = Σ_{i ≤ k} relᵢ / log₂(i + 1), divided by that of the query's best list

    It is trec_eval's ``ndcg`` and ``ndcg_cut`` (after Järvelin & Kekäläinen, TOIS 2002), ``ndcg`` of ranx and ``nDCG``
    of ir_measures. :class:`~diptych.metrics.NDCG` has the gain 2^rel − 1, called ``ndcg_burges`` by ranx and
    ``nDCG(dcg='exp-log2')`` by ir_measures. Both agree where grades are 0 and 1. Exact in expectation under ties.

    >>> from diptych.benchmark.exchange import LinearNDCG
    >>> from diptych.metrics import NDCG, GradedRelevance, evaluate_scores
    >>> relevance, measures = GradedRelevance([[1, 3, 0]]), [LinearNDCG(), NDCG(None, "ideal")]
    >>> [round(value, 4) for value in evaluate_scores([[0.9, 0.8, 0.7]], relevance, measures).mean.values()]
    [0.7967, 0.7098]
    """

    cutoff: int | None = None

    def __post_init__(self) -> None:
        NDCG(self.cutoff, "ideal")

    @property
    def label(self) -> str:
        """``NDCG@k`` with its gain."""
        return f"NDCG{'' if self.cutoff is None else f'@{self.cutoff}'} (linear gain)"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        # A gain of 2^g' − 1 with g' = log₂(1 + g) is g.
        return NDCG(self.cutoff, "ideal").compute(replace(groups, grades=np.log2(1 + groups.grades)))
