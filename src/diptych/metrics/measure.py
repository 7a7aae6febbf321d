"""What every measure and every curve is, and the chance that a tie group puts relevant items within a cutoff."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.tie_groups import RankedGroups


class Measure(ABC):
    """A measure of a ranking, exact in expectation under ties.

    Measures are frozen dataclasses: equal parameters make equal measures, the representation is the identity, and
    ``label`` is what a table prints, with the convention in the name. A new measure defines ``label`` and
    ``_expectation`` and is then understood by :func:`diptych.metrics.evaluate`.

    >>> from diptych.metrics import AP
    >>> AP(cutoff=50, denominator="retrieved")
    AP(cutoff=50, denominator='retrieved')
    >>> AP(cutoff=50, denominator="retrieved").label
    'MAP@50 (retrieved)'
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name to print, with its convention."""

    @abstractmethod
    def _expectation(self, groups: RankedGroups) -> FloatArray:
        """Return one value per query; what stands for queries without relevant items is overwritten."""

    def compute(self, groups: RankedGroups) -> FloatArray:
        """Return one float64 per query, NaN where the query has no relevant item."""
        values = np.asarray(self._expectation(groups), dtype=np.float64)
        return np.where(groups.n_relevant > 0, values, np.nan)

    def worst(self, groups: RankedGroups) -> FloatArray:
        """Return the value per query that stands for "nothing relevant was found"."""
        return np.zeros(groups.n_queries)

    def aggregate(self, values: FloatArray) -> float:
        """Reduce values per query to one number: their mean, NaN left out."""
        return float(np.mean(_without_nan(values)))

    def chance(self, tied: RankedGroups) -> float:
        """Return the exact value of a ranker that draws orders at random; ``tied`` has one group per query."""
        shapes, inverse = np.unique(np.column_stack([tied.gallery, tied.total]), axis=0, return_inverse=True)
        distinct = RankedGroups.all_tied(shapes[:, 1:], shapes[:, 0], tied.grades)
        values = self.compute(distinct)
        return self.aggregate(np.where(np.isnan(values), self.worst(distinct), values)[inverse.ravel()])


def _without_nan(values: FloatArray) -> FloatArray:
    known = values[~np.isnan(values)]
    if not len(known):
        raise InvalidInputError("no query has a relevant item, so there is nothing to average; check the labels")
    return known


@dataclass(frozen=True)
class CutoffMeasure(Measure):
    """A measure of the first ``cutoff`` items; a cutoff beyond the gallery means all of it."""

    cutoff: int

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)


def check_cutoff(cutoff: object, *, name: str = "cutoff") -> None:
    """Raise an error unless ``cutoff`` is a whole number of at least 1."""
    if not isinstance(cutoff, int | np.integer) or isinstance(cutoff, bool) or cutoff < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, got {cutoff!r}")


def effective_cutoff(cutoff: int | None, groups: RankedGroups) -> IntArray:
    """Return the cutoff of each query, which is never beyond its gallery."""
    if cutoff is None:
        return groups.gallery
    return cast(IntArray, np.minimum(groups.gallery, cutoff))


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


def hypergeometric(size: int, relevant: int, drawn: int) -> tuple[IntArray, FloatArray]:
    """Return the possible numbers of relevant items among ``drawn`` of ``size`` items, and their probabilities.

    The probabilities follow from the ratios of neighbours, summed outwards from the mode: differences of log-gamma
    values would lose six digits for galleries of a million.
    """
    low, high = max(0, drawn - (size - relevant)), min(relevant, drawn)
    found = np.arange(low, high + 1)
    here = found[:-1].astype(np.float64)
    steps = np.log((relevant - here) * (drawn - here) / ((here + 1) * (size - relevant - drawn + here + 1)))
    mode = int(np.searchsorted(-steps, 0.0))
    logs = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
    weights = np.exp(logs)
    return found, weights / weights.sum()


def miss_probability(size: int, relevant: int, drawn: int) -> float:
    """Return C(size − relevant, drawn) / C(size, drawn), the chance that no relevant item is drawn."""
    fewer, more = sorted((relevant, drawn))
    remaining = size - np.arange(fewer, dtype=np.float64)
    return float(np.prod(np.maximum(remaining - more, 0) / remaining))
