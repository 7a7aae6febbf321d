"""What every curve is: a mean over queries of values along the ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from diptych.arrays import FloatArray
from diptych.metrics.ranked_groups import RankedGroups


@dataclass(frozen=True, eq=False)
class CurvePoints:
    """The points of a measured curve, and what its axes mean.

    >>> import numpy as np
    >>> from diptych.metrics import CurvePoints
    >>> CurvePoints(np.array([1, 2]), np.array([0.5, 1.0]), "rank", "matched queries").y
    array([0.5, 1. ])
    """

    x: FloatArray
    y: FloatArray
    x_label: str
    y_label: str


class Curve(ABC):
    """A curve averaged over queries.

    A curve adds up what a block of queries contributes (``total``) and turns the sum into points at the end
    (``points``), so one pass over the scores fills measures and curves together, in memory of the order of one gallery.

    >>> from diptych.metrics import CMCCurve, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "cat"])
    >>> result = evaluate_scores([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]], relevance, [CMCCurve()])
    >>> result[CMCCurve()].y
    array([0.5, 1. , 1. ])
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name to print."""

    @abstractmethod
    def total(self, groups: RankedGroups) -> FloatArray:
        """Return what the queries of a block add; arrays of unequal length are added from their start."""

    @abstractmethod
    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return the curve, given the sum over all blocks and the number of queries to average over."""
