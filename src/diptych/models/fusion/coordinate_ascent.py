"""Weights that maximise a measure of ranking, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.estimators import BaseEstimator
from diptych.former_names import FORMERLY_SEED, FormerNames
from diptych.metrics import NDCG, Measure
from diptych.models.base import check_choice, check_counts, check_number
from diptych.models.fusion._ranked_lists import RankedLists


@dataclass(frozen=True)
class AscentReport:
    """One pass over all parts: which restart and which pass of it, the measure reached, and the weights then.

    >>> from diptych.models.fusion import AscentReport
    >>> AscentReport(restart=1, passes=2, value=0.5, weights=(0.75, 0.25)).value
    0.5
    """

    restart: int
    passes: int
    value: float
    weights: tuple[float, ...]


Starts = Literal["uniform", "random"]
_FIRST_STEP, _FIRST_SHARE = 0.001, 0.05
# Values closer than this differ by rounding alone.
_EQUAL = 1e-12
_NDCG = NDCG()


class CoordinateAscent(FormerNames, BaseEstimator):
    """Learns the weights λ of a linear fusion f = Σ λᵢ fᵢ by maximising a measure of its rankings.

    A measure such as average precision has no gradient in the weights, so one weight is changed while the others stand
    still: steps of 0.001, 0.002, 0.004, … are added up, first upwards, then downwards, then the weight is set to zero;
    the first direction that brings a better value is taken, to its best point. Parts are visited in random order until
    a pass over all gains less than ``tolerance``; Σ |λᵢ| = 1 after each change. This schedule is that of RankLib;
    weights below zero, which it allows, are an option here. The best weights of several searches are kept, of equal
    ones those nearest to equal weights: they are never worse than the average on the queries they were learned from.

    Use it for a handful of parts and at least some dozens of judged queries, and bring the parts to a similar scale
    first, as `fuse_scores` does; look at the result on other queries.

    Parameters
    ----------
    measure : Measure
        What to maximise: any measure of `diptych.metrics`; ranks are minimised.
    restarts : int
        Searches, each with its own order of visits.
    tolerance : float
        Least gain of a pass that is worth another one.
    starts : {"uniform", "random"}
        Where searches start: all at equal weights, or all but the first at random ones.
    negative : bool
        Whether a part may count against a candidate.
    trials : int
        Steps in each direction, each twice as long as the one before.
    random_state : int
        Of the orders and of random starts.

    Attributes
    ----------
    weights_ : array
        One weight for each part, Σ |λᵢ| = 1.
    value_, average_value_ : float
        The measure at these weights and at equal ones.
    n_trials_ : int
        Different weights that were tried.

    References
    ----------
    Metzler and Croft, "Linear feature-based models for information retrieval", Information Retrieval 2007; used for
    fusion by Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.metrics import AP
    >>> from diptych.models import CoordinateAscent
    >>> rng = np.random.default_rng(0)
    >>> grades = [rng.integers(0, 2, 20) for _ in range(30)]
    >>> scores = [np.stack([wanted + rng.normal(size=20), rng.normal(size=20)]) for wanted in grades]
    >>> ascent = CoordinateAscent(measure=AP()).fit(scores, grades)
    >>> bool(ascent.weights_[0] > ascent.weights_[1]), bool(ascent.value_ >= ascent.average_value_)
    (True, True)
    """

    former_names = FORMERLY_SEED

    weights_: FloatArray
    value_: float
    average_value_: float
    n_trials_: int

    def __init__(
        self,
        *,
        measure: Measure = _NDCG,
        restarts: int = 5,
        tolerance: float = 1e-3,
        starts: Starts = "uniform",
        negative: bool = False,
        trials: int = 25,
        random_state: int = 0,
    ) -> None:
        self.measure = measure
        self.restarts = restarts
        self.tolerance = tolerance
        self.starts = starts
        self.negative = negative
        self.trials = trials
        self.random_state = random_state

    def fit(
        self,
        scores: Sequence[ArrayLike],
        grades: Sequence[ArrayLike],
        *,
        progress: Callable[[AscentReport], None] | None = None,
    ) -> Self:
        """Learn from one (parts, candidates) matrix of scores and one list of grades for each query.

        Grades above zero are relevant; queries may have different candidates. ``progress`` is called after each pass.
        """
        self._check()
        lists = RankedLists.of(scores, grades)
        landscape = _MeasureByWeights(lists, self.measure)
        uniform = np.full(lists.n_parts, 1 / lists.n_parts)
        rng = np.random.default_rng(self.random_state)
        best = uniform
        for restart in range(1, self.restarts + 1):
            start = uniform if restart == 1 or self.starts == "uniform" else rng.dirichlet(np.ones(lists.n_parts))
            reached = self._climb(landscape, start, rng, restart, progress)
            best = min(best, reached, key=lambda at: (-round(landscape.value(at), 11), np.abs(at - uniform).sum()))
        self.weights_ = best
        self.value_, self.average_value_ = landscape.measured(best), landscape.measured(uniform)
        self.n_trials_ = len(landscape.known)
        return self

    def _climb(
        self,
        landscape: _MeasureByWeights,
        weights: FloatArray,
        rng: np.random.Generator,
        restart: int,
        progress: Callable[[AscentReport], None] | None,
    ) -> FloatArray:
        """Return where one search ends."""
        value, gain, passes = landscape.value(weights), np.inf, 0
        while gain >= self.tolerance and len(weights) > 1:
            before = value
            for part in rng.permutation(len(weights)):
                weights, value = self._best_on_line(landscape, weights, value, int(part))
            gain, passes = value - before, passes + 1
            if progress is not None:
                shown = tuple(float(weight) for weight in weights)
                progress(AscentReport(restart, passes, landscape.measured(weights), shown))
            if gain <= _EQUAL:
                break
        return weights

    def _best_on_line(
        self, landscape: _MeasureByWeights, weights: FloatArray, value: float, part: int
    ) -> tuple[FloatArray, float]:
        """Return the weights after one part's turn, and their value."""
        fused = landscape.lists.fused(weights)
        for changes in self._directions(float(weights[part])):
            best, best_value = weights, value
            for change in changes:
                trial = weights.copy()
                trial[part] += change
                if not self.negative and trial[part] < 0:
                    break
                if not np.abs(trial).sum() > _EQUAL:
                    continue
                trial_value = landscape.value(trial, partial(landscape.lists.moved, fused, part, float(change)))
                if trial_value > best_value + _EQUAL:
                    best, best_value = trial, trial_value
            if best_value > value:
                return best / np.abs(best).sum(), best_value
        return weights, value

    def _directions(self, weight: float) -> Iterator[FloatArray]:
        """Yield the changes to try upwards, downwards, and to zero."""
        # A weight that is small for the first step gets shorter ones.
        step = _FIRST_SHARE * abs(weight) if weight and abs(weight) / 2 < _FIRST_STEP else _FIRST_STEP
        # Steps double, and their sums are 1, 3, 7, … times the first.
        lengths = step * (2.0 ** np.arange(1, self.trials + 1) - 1)
        yield lengths
        yield -lengths
        if weight:
            yield np.array([-weight])

    def _check(self) -> None:
        if not isinstance(self.measure, Measure):
            raise InvalidInputError(f"measure must be one of diptych.metrics such as AP(), got {self.measure!r}")
        check_counts(self, "restarts", "trials")
        check_number("tolerance", self.tolerance, low=0)
        check_choice("starts", self.starts, ("uniform", "random"))


class _MeasureByWeights:
    """The measure over all weights; a direction that was asked before is remembered."""

    def __init__(self, lists: RankedLists, measure: Measure) -> None:
        self.lists = lists
        self._measure = measure
        self._sign = -1.0 if lists.is_cost(measure) else 1.0
        self.known: dict[tuple[float, ...], float] = {}

    def value(self, weights: FloatArray, fused: Callable[[], list[FloatArray]] | None = None) -> float:
        """Return the measure at ``weights``, larger is better; ``fused`` makes their sums where that is cheaper."""
        key = tuple((weights / np.abs(weights).sum()).round(12).tolist())
        if key not in self.known:
            sums = self.lists.fused(weights) if fused is None else fused()
            self.known[key] = self._sign * self.lists.value(sums, self._measure)
        return self.known[key]

    def measured(self, weights: FloatArray) -> float:
        return float(self._sign * self.value(weights))
