"""Scores of several runs as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.benchmark.web.judged_lists import JudgedLists
from diptych.benchmark.web.web_run import WebRun
from diptych.metrics import NDCG
from diptych.models import CoordinateAscent, fuse_scores

_DEVELOPMENT = "captions"


@dataclass(frozen=True, eq=False)
class FusedRuns:
    """A weighted sum of standardised scores: each part's scores of a list have mean 0 and deviation 1.

    Dong et al. (2018) put scores through a sigmoid; z-scores, which that equation leaves to the reader, keep parts of
    different scales comparable.
    """

    parts: tuple[WebRun, ...]
    weights: FloatArray

    @classmethod
    def average(cls, parts: Sequence[WebRun]) -> FusedRuns:
        """Return the fusion with equal weights."""
        return cls(tuple(parts), np.full(len(parts), 1 / len(parts)))

    @classmethod
    def learned(
        cls,
        parts: Sequence[WebRun],
        development: JudgedLists,
        queries: IntArray | None = None,
        *,
        restarts: int = 2,
        trials: int = 12,
        seed: int = 0,
    ) -> FusedRuns:
        """Return the fusion whose weights coordinate ascent finds on queries of the development part."""
        standard = [_standardised(part.scores[_DEVELOPMENT]) for part in parts]
        chosen = np.arange(len(development.queries)) if queries is None else queries
        scores, grades = [], []
        for query in chosen.tolist():
            columns, own = development.candidates(query)
            scores.append(np.stack([part[query, columns] for part in standard]))
            grades.append(own)
        ascent = CoordinateAscent(measure=NDCG(), restarts=restarts, trials=trials, seed=seed).fit(scores, grades)
        return cls(tuple(parts), ascent.weights_)

    def scores(self, name: str) -> FloatArray:
        """Return the fused scores of a list."""
        return fuse_scores([part.scores[name] for part in self.parts], self.weights, rescale="zscore")

    @property
    def shares(self) -> Mapping[str, float]:
        """The weight of each part by its name."""
        names = (f"{part.method} {part.feature}" for part in self.parts)
        return dict(zip(names, self.weights.tolist(), strict=True))


def _standardised(scores: FloatArray) -> FloatArray:
    return fuse_scores([scores], rescale="zscore")
