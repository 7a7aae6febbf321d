"""Average precision with a named denominator and cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.measure import Measure, check_cutoff, effective_cutoff, hypergeometric
from diptych.metrics.tie_groups import RankedGroups

_ASYMPTOTIC_FROM = 64
Denominator = Literal["total", "retrieved", "min"]


def reciprocal_sum(before: IntArray, count: IntArray) -> FloatArray:
    """Return Σ_{j=1..count} 1 / (before + j) = H(before + count) − H(before).

    Subtracting two harmonic numbers loses digits when the gallery is large and the group small, which then show in
    average precision; here the leading term is a ``log1p`` and nothing cancels.
    """
    total = count / (before + 1.0)
    several = count > 1
    if several.any():
        total[several] = _several(before[several].astype(np.float64), count[several].astype(np.float64))
    return cast(FloatArray, total)


def _several(before: FloatArray, count: FloatArray) -> FloatArray:
    end = before + count
    large = np.maximum(before, _ASYMPTOTIC_FROM)
    asymptotic = np.log1p(count / large) + _correction(large + count) - _correction(large)
    return cast(
        FloatArray,
        np.where(
            before < _ASYMPTOTIC_FROM, scipy.special.digamma(end + 1) - scipy.special.digamma(before + 1), asymptotic
        ),
    )


def _correction(m: FloatArray) -> FloatArray:
    """Return H(m) − ln m − γ by its asymptotic series; the next term is below 2⁻⁵³/60 from m = 64 on."""
    square = m * m
    return cast(FloatArray, 1 / (2 * m) - (1 / 12 - (1 / 120 - 1 / (252 * square)) / square) / square)


@dataclass(frozen=True)
class AP(Measure):
    """Average precision; its mean over queries is MAP.

    With δᵢ = 1 when the item at rank i is relevant, P(i) the precision of the first i items and R the cutoff,

        AP@R = (1/c) Σ_{i ≤ R} δᵢ P(i)

    where c is chosen by ``denominator``. Without a cutoff the three agree; with one they differ a lot:

    * ``total``: all relevant items of the gallery;
    * ``retrieved``: the relevant items among the first R, 0 when there are none;
    * ``min``: the smaller of R and all relevant items.

    Ties are resolved by exact expectation. A group of n items, r of them relevant, with N items and R₀ relevant ones
    before it adds (r/n)[(R₀ + 1 − t(N + 1)) h + t n] with t = (r − 1)/(n − 1) and h = H(N + n) − H(N) (McSherry &
    Najork, ECIR 2008). With ``retrieved`` the number of hits inside a group that the cutoff divides is hypergeometric,
    and the expectation sums over it. There a further hit late in the list can lower the score, so optimistic
    tie-breaking need not exceed the expectation.

    Use plain ``AP()`` for class retrieval (Costa Pereira et al., TPAMI 2014; Menon et al., SDM 2015), and a cutoff
    when only the first page matters; say which denominator.

    >>> from diptych.metrics import AP, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "cat"])
    >>> result = evaluate_scores([[0.9, 0.8, 0.7]], relevance, [AP(), AP(2), AP(2, "retrieved")])
    >>> [round(value, 4) for value in result.mean.values()]
    [0.8333, 0.5, 1.0]
    """

    cutoff: int | None = None
    denominator: Denominator = "total"

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_cutoff(self.cutoff)
        if self.denominator not in get_args(Denominator):
            raise InvalidInputError(
                f"denominator must be one of {', '.join(get_args(Denominator))}, got {self.denominator!r}"
            )

    @property
    def label(self) -> str:
        """``MAP`` without a cutoff, otherwise with cutoff and denominator."""
        return "MAP" if self.cutoff is None else f"MAP@{self.cutoff} ({self.denominator})"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        cutoff = effective_cutoff(self.cutoff, groups)
        inside = groups.inside(cutoff)
        sums = _precision_sums(groups, inside)
        if self.denominator == "retrieved" and (cutoff < groups.gallery).any():
            return _retrieved(groups, inside, sums)
        relevant = np.minimum(groups.n_relevant, cutoff) if self.denominator == "min" else groups.n_relevant
        return cast(FloatArray, groups.sum_by_query(sums) / np.maximum(relevant, 1))


def _precision_sums(groups: RankedGroups, inside: IntArray) -> FloatArray:
    """Return the expected sum of δᵢP(i) over the first ``inside`` positions of each group."""
    following = (groups.hits - 1) / np.maximum(groups.size - 1, 1)
    sums = _linear_over_rank(groups.relevant_before, groups.before, inside, following)
    return cast(FloatArray, sums * (groups.hits / groups.size))


def _linear_over_rank(relevant_before: IntArray, before: IntArray, count: IntArray, slope: FloatArray) -> FloatArray:
    """Return Σ_{j=1..count} (R₀ + 1 + (j − 1) slope) / (N + j)."""
    constant = relevant_before + 1 - slope * (before + 1)
    return cast(FloatArray, constant * reciprocal_sum(before, count) + slope * count)


def _retrieved(groups: RankedGroups, inside: IntArray, sums: FloatArray) -> FloatArray:
    """Divide by the hits within the cutoff, which are random where the cutoff divides a group."""
    whole = inside == groups.size
    earlier = groups.sum_by_query(np.where(whole, sums, 0.0))
    hits = groups.sum_by_query(np.where(whole, groups.hits, 0))
    values = earlier / np.maximum(hits, 1)
    for index in np.flatnonzero((inside > 0) & ~whole):
        query = groups.query[index]
        values[query] = _divided_group(groups, int(index), int(inside[index]), float(earlier[query]))
    return cast(FloatArray, values)


def _divided_group(groups: RankedGroups, index: int, inside: int, earlier: float) -> float:
    """Average over the number m of relevant items that fall within the cutoff."""
    found, probability = hypergeometric(int(groups.size[index]), int(groups.hits[index]), inside)
    before, relevant_before = groups.before[index], groups.relevant_before[index]
    slope = (found - 1) / max(inside - 1, 1)
    position = np.full(len(found), before)
    sums = _linear_over_rank(np.full(len(found), relevant_before), position, np.full(len(found), inside), slope)
    shares = (earlier + sums * found / inside) / np.maximum(relevant_before + found, 1)
    return float(probability @ shares)
