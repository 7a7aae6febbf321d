"""Precision and recall (of the first items, at every scope, averaged, as curves) and discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.measure import (
    Curve,
    CurvePoints,
    CutoffMeasure,
    Measure,
    RankedGroups,
    check_cutoff,
    effective_cutoff,
    hypergeometric,
)

_ASYMPTOTIC_FROM = 64
Denominator = Literal["total", "retrieved", "min"]

PRINTED_CONSTANT = 0.01757
_PRINTED_FOR = (25, 3)


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
    # Retrievers come with a measure, and most of them are never measured.
    from scipy.special import digamma

    end = before + count
    large = np.maximum(before, _ASYMPTOTIC_FROM)
    asymptotic = np.log1p(count / large) + _correction(large + count) - _correction(large)
    return cast(
        FloatArray,
        np.where(before < _ASYMPTOTIC_FROM, digamma(end + 1) - digamma(before + 1), asymptotic),
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
        inside = groups.size if self.cutoff is None else groups.inside(cutoff)
        sums = _precision_sums(groups, inside)
        if self.denominator == "retrieved" and (cutoff < groups.gallery).any():
            return _retrieved(groups, inside, sums)
        relevant = np.minimum(groups.n_relevant, cutoff) if self.denominator == "min" else groups.n_relevant
        return cast(FloatArray, groups.sum_by_query(sums) / np.maximum(relevant, 1))


def _precision_sums(groups: RankedGroups, inside: IntArray) -> FloatArray:
    """Return the expected sum of δᵢP(i) over the first ``inside`` positions of each group."""
    # Most groups are one relevant item, of which the formula leaves this.
    sums = (groups.relevant_before + 1) * (inside / (groups.before + 1.0))
    several = np.flatnonzero(groups.size > 1)
    hits, size = groups.hits[several], groups.size[several]
    following = (hits - 1) / (size - 1)
    of_several = groups.relevant_before[several], groups.before[several], inside[several]
    sums[several] = _linear_over_rank(*of_several, following) * (hits / size)
    return cast(FloatArray, sums)


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


Normaliser = Literal["fixed", "printed", "ideal"]


@dataclass(frozen=True)
class NDCG(Measure):
    """Discounted cumulative gain of graded relevance, normalised.

        NDCG@k = Z Σ_{i ≤ k} (2^relᵢ − 1) / log₂(i + 1)

    ``normaliser`` chooses Z:

    * ``fixed``: the reciprocal of a list of k items of ``max_grade``, the same for every query, so that a query with
      fewer such items cannot reach 1. For k = 25 and grade 3 it is 0.01756779;
    * ``printed``: 0.01757, the same constant as Dong et al. print it ("Cross-media similarity evaluation for web
      image retrieval in the wild", TMM 2018), for k = 25 and grade 3 only; a perfect list then scores 1.000126;
    * ``ideal``: the query's own best list, so that a perfect ranking scores 1 (Järvelin & Kekäläinen, TOIS 2002).
      Here ``cutoff`` may be None.

    Missing positions count 0. Under ties each position of a group has the group's mean gain (McSherry & Najork, ECIR
    2008). Use it for graded judgements: :class:`~diptych.metrics.GradedRelevance`.

    >>> from diptych.metrics import NDCG, GradedRelevance, evaluate_scores
    >>> relevance = GradedRelevance([[3, 2, 0]])
    >>> measures = [NDCG(2, "fixed"), NDCG(2, "ideal")]
    >>> [round(value, 4) for value in evaluate_scores([[0.9, 0.8, 0.7]], relevance, measures).mean.values()]
    [0.7789, 1.0]
    """

    cutoff: int | None = 25
    normaliser: Normaliser = "fixed"
    max_grade: float = 3

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_cutoff(self.cutoff)
        if self.normaliser not in get_args(Normaliser):
            raise InvalidInputError(
                f"normaliser must be one of {', '.join(get_args(Normaliser))}, got {self.normaliser!r}"
            )
        if self.cutoff is None and self.normaliser != "ideal":
            raise InvalidInputError(f"the {self.normaliser} normaliser needs a cutoff; pass one or use 'ideal'")
        if not self.max_grade > 0:
            raise InvalidInputError(f"max_grade must be positive, got {self.max_grade!r}")
        if self.normaliser == "printed" and (self.cutoff, self.max_grade) != _PRINTED_FOR:
            raise InvalidInputError(
                f"the printed constant {PRINTED_CONSTANT} holds for cutoff 25 and max_grade 3; use 'fixed' otherwise"
            )

    @property
    def label(self) -> str:
        """``NDCG@k`` with its normaliser."""
        return f"NDCG{'' if self.cutoff is None else f'@{self.cutoff}'} ({self.normaliser})"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        self._check_grades(groups.grades)
        cutoff = effective_cutoff(self.cutoff, groups)
        depth = max(int(cutoff.max()), self.cutoff or 0)
        # The sums of the first 0, 1, …, depth discounts.
        discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2.0, depth + 2)))])
        gain = np.exp2(groups.grades) - 1
        inside = groups.inside(cutoff)
        share = _discount_between(discounts, groups.before, inside) / groups.size
        achieved = groups.sum_by_query(groups.relevant @ gain * share)
        if self.normaliser == "printed":
            return achieved * PRINTED_CONSTANT
        if self.cutoff is not None and self.normaliser == "fixed":
            return cast(FloatArray, achieved / ((2**self.max_grade - 1) * discounts[self.cutoff]))
        return cast(FloatArray, achieved / _ideal(groups, cutoff, discounts, gain))

    def _check_grades(self, grades: FloatArray) -> None:
        if self.normaliser != "ideal" and len(grades) and grades[-1] > self.max_grade:
            raise InvalidInputError(
                f"grade {grades[-1]:g} exceeds max_grade {self.max_grade:g} of the {self.normaliser} normaliser; "
                "raise max_grade or use 'ideal'"
            )


def _discount_between(discounts: FloatArray, before: IntArray, count: IntArray) -> FloatArray:
    """Return the sum of ``count`` discounts after position ``before``; a single one without a subtraction."""
    start = np.minimum(before, len(discounts) - 1)
    several = discounts[np.minimum(before + count, len(discounts) - 1)] - discounts[start]
    return cast(FloatArray, np.where(count == 1, 1 / np.log2(before + 2.0), several))


def _ideal(groups: RankedGroups, cutoff: IntArray, discounts: FloatArray, gain: FloatArray) -> FloatArray:
    """Return the gain of each query's best list; 1 where nothing is relevant, where it is not used."""
    best = np.zeros(groups.n_queries)
    start = np.zeros(groups.n_queries, dtype=np.int64)
    for level in range(len(gain))[::-1]:
        end = np.minimum(start + groups.total[:, level], cutoff)
        best += gain[level] * (discounts[end] - discounts[start])
        start = end
    return cast(FloatArray, np.where(best > 0, best, 1.0))
