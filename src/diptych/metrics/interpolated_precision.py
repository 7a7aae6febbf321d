"""Interpolated precision at levels of recall, the curve of the literature, in expectation over the orders of ties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.measure import Curve, CurvePoints, RankedGroups, break_ties, check_cutoff

_TOLERANCE = 1e-12
# Up to so many steps for one query, about a millisecond, its expectation is computed and not sampled.
_MAX_STEPS = 200_000


@dataclass(frozen=True)
class InterpolatedPrecisionRecall(Curve):
    """Interpolated precision at evenly spaced recall levels, 11 by default, averaged over queries.

    The value at recall r is max{P(i) : recall(i) ≥ r}, with a tolerance of 1e-12 so that 3 of 10 items reach 0.3
    (Costa Pereira et al., TPAMI 2014; Menon et al., SDM 2015). The mean of the 11 values is not average precision.

    Under ties the value is the expectation of that maximum over all orders of tied items. It is exact as long as a
    query ties few items, up to some fifty in one group with ten relevant ones among them. Beyond that, as with short
    hash codes, ``samples`` random orders drawn with ``seed`` are averaged: the standard error of one query is at most
    1/(2√samples), 0.05, and that of a mean over n queries √n times smaller.

    >>> from diptych.metrics import InterpolatedPrecisionRecall, SameLabel, evaluate_scores
    >>> curve = InterpolatedPrecisionRecall(levels=3)
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7]], relevance, [curve])[curve].y.round(4)
    array([1.    , 1.    , 0.6667])

    Of a cat and a dog that tie, either is first half of the time:

    >>> evaluate_scores([[0.9, 0.9, 0.7]], relevance, [curve])[curve].y.round(4)
    array([0.8333, 0.8333, 0.6667])
    """

    levels: int = 11
    samples: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_cutoff(self.samples, name="samples")
        check_cutoff(self.levels, name="levels")
        if self.levels < 2:
            raise InvalidInputError(f"levels must be at least 2, from recall 0 to recall 1, got {self.levels}")

    @property
    def label(self) -> str:
        """``n-point interpolated precision–recall``."""
        return f"{self.levels}-point interpolated precision–recall"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return the summed interpolated precision at each level."""
        undecided = groups.sum_by_query((groups.hits < groups.size).astype(np.int64)) > 0
        decided = break_ties(groups.select(~undecided & (groups.n_relevant > 0)), "optimistic")
        total = self._interpolate(decided)
        tied = groups.select(undecided)
        needed = self._needed(tied.n_relevant)
        for query, start in enumerate(tied.first):
            end = tied.first[query + 1] if query + 1 < len(tied.first) else len(tied.query)
            columns = (tied.before, tied.relevant_before, tied.size, tied.hits)
            rows = zip(*(column[start:end].tolist() for column in columns), strict=True)
            ranking, levels = tuple(_TieGroup(*row) for row in rows), tuple(needed[query].tolist())
            if _steps(ranking) <= _MAX_STEPS:
                total = total + np.array(_expected_best(ranking, levels))
            else:
                generator = np.random.default_rng([self.seed, int(tied.rows[query])])
                total = total + _sampled_best(ranking, levels, self.samples, generator)
        return total

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return mean interpolated precision against recall."""
        return CurvePoints(self._recall(), total / n_queries, "recall", "interpolated precision")

    def _recall(self) -> FloatArray:
        return np.linspace(0.0, 1.0, self.levels)

    def _needed(self, n_relevant: IntArray) -> IntArray:
        """Return how many relevant items reach each level."""
        return cast(IntArray, np.ceil((self._recall() - _TOLERANCE) * n_relevant[:, None]).astype(np.int64).clip(1))

    def _interpolate(self, order: RankedGroups) -> FloatArray:
        """Sum the curves of rankings without ties.

        Precision peaks at relevant items, so only they are looked at: the best precision between the items that reach
        one level and the next, then the best from each level onwards.
        """
        if not order.n_queries:
            return np.zeros(self.levels)
        precision = (order.relevant_before + 1) / (order.before + 1)
        starts = order.first[:, None] + self._needed(order.n_relevant) - 1
        between = np.maximum.reduceat(precision, starts.ravel()).reshape(starts.shape)
        best = np.maximum.accumulate(between[:, ::-1], axis=1)[:, ::-1]
        return cast(FloatArray, best.sum(axis=0))


class _TieGroup(NamedTuple):
    """Items that tie: those before them, how many of these are relevant, their number, and the relevant of them."""

    before: int
    found: int
    size: int
    hits: int

    @property
    def is_decided(self) -> bool:
        """Whether all are relevant, so that their order does not matter."""
        return self.hits == self.size


def _steps(ranking: tuple[_TieGroup, ...]) -> int:
    """Return about how many numbers the exact expectation takes."""
    tied = [group for group in ranking if not group.is_decided]
    n_values = sum(group.hits * (group.size - group.hits + 1) for group in tied)
    return n_values * sum(group.size * (group.hits + 1) for group in tied)


@lru_cache(maxsize=1024)
def _expected_best(ranking: tuple[_TieGroup, ...], needed: tuple[int, ...]) -> tuple[float, ...]:
    """Return the expectation of the best precision from the k-th relevant item onwards, for each k of ``needed``.

    The best is at most v if every relevant item from the k-th onwards has a precision of at most v, and groups are
    independent of one another.
    """
    floor = _best_decided(ranking)[np.array(needed) - 1]
    tied = [group for group in ranking if not group.is_decided]
    values = np.unique(np.concatenate([floor, *(_precisions(group).ravel() for group in tied)]))
    later = np.ones(len(values))
    below = [later] * len(needed)
    for group in reversed(tied):
        skipped = [max(0, count - group.found - 1) for count in needed]
        shares = _share_below(group, values, {0, *(some for some in skipped if some < group.hits)})
        below = [
            shares[some] * later if some < group.hits else share for some, share in zip(skipped, below, strict=True)
        ]
        later = shares[0] * later
    return tuple(
        float(values @ np.diff(np.where(values >= least, share, 0.0), prepend=0.0))
        for least, share in zip(floor, below, strict=True)
    )


def _best_decided(ranking: tuple[_TieGroup, ...]) -> FloatArray:
    """Return the best precision from each relevant item onwards among those whose place no order changes, else 0."""
    precision = np.zeros(sum(group.hits for group in ranking))
    for before, found, size, hits in ranking:
        if hits == size:
            ranks = np.arange(1, hits + 1)
            precision[found : found + hits] = (found + ranks) / (before + ranks)
    return np.maximum.accumulate(precision[::-1])[::-1]


def _precisions(group: _TieGroup) -> FloatArray:
    """Return the precision at every relevant item of a group in every place that it can take."""
    rank = np.arange(1, group.hits + 1)[:, None]
    place = rank + np.arange(group.size - group.hits + 1)
    return cast(FloatArray, (group.found + rank) / (group.before + place))


def _share_below(group: _TieGroup, values: FloatArray, skipped: set[int]) -> dict[int, FloatArray]:
    """Return the share of orders of a group whose precisions stay up to each value, its first relevant items skipped.

    There is one array for each number of ``skipped``. Going through the positions from the last to the first,
    ``safe[c]`` is the probability that all later relevant items stay up to a value if c came before: the next position
    holds one with probability (hits − c)/(positions left).
    """
    before, found, size, hits = group
    ranks = np.arange(1, hits + 1)
    # chances[i, c]: c relevant items among the first i.
    chances = np.zeros((size + 1, hits + 2))
    chances[0, 0] = 1
    for place in range(1, size + 1):
        taken = (hits - np.arange(hits + 1)) / (size - place + 1)
        chances[place, :-1] = chances[place - 1, :-1] * (1 - taken)
        chances[place, 1:] += chances[place - 1, :-1] * taken
    safe = np.ones((hits + 1, len(values)))
    shares = {count: np.zeros(len(values)) for count in skipped if count}
    for place in range(size, 0, -1):
        # States that cannot be reached would need more relevant items than there are positions left.
        taken = ((hits - ranks + 1) / (size - place + 1)).clip(max=1)[:, None]
        for count in shares:
            # The last of those skipped stands here, and what follows is safe.
            shares[count] += chances[place - 1, count - 1] * taken[count - 1] * safe[count]
        allowed = ((found + ranks) / (before + place))[:, None] <= values
        safe[:-1] = taken * allowed * safe[1:] + (1 - taken) * safe[:-1]
    return shares | {0: safe[0]}


def _sampled_best(
    ranking: tuple[_TieGroup, ...], needed: tuple[int, ...], samples: int, generator: np.random.Generator
) -> FloatArray:
    """Return what `_expected_best` does, as the mean over random orders."""
    places = [
        group.before + 1 + np.sort(_subsets(group.size, group.hits, samples, generator), axis=1) for group in ranking
    ]
    every = np.concatenate(places, axis=1)
    precision = np.arange(1, every.shape[1] + 1) / every
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return cast(FloatArray, best[:, np.array(needed) - 1].mean(axis=0))


def _subsets(size: int, hits: int, samples: int, generator: np.random.Generator) -> IntArray:
    if hits == size:
        return np.tile(np.arange(size), (samples, 1))
    return np.argpartition(generator.random((samples, size)), hits - 1, axis=1)[:, :hits]
