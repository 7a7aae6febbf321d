"""Measures of the first relevant item: whether it is among the first ones, its rank, and the whole CMC curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from diptych.arrays import FloatArray
from diptych.metrics.measure import (
    Curve,
    CurvePoints,
    CutoffMeasure,
    Measure,
    RankedGroups,
    check_cutoff,
    effective_cutoff,
    miss_probability,
)

_NEGLIGIBLE_LOG = 45


@dataclass(frozen=True)
class CMC(Measure):
    """Cumulative match characteristic: the share of queries whose first relevant item has rank ≤ ``rank``.

    One match suffices, however many exist. Under ties the probability is 1 − C(n − r, s) / C(n, s), for s positions
    inside the rank of the first group with r relevant among n items (McSherry & Najork, ECIR 2008). CMC(1) is P@1.
    Use it when the searcher needs one right answer.

    >>> from diptych.metrics import CMC, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]], relevance, [CMC(1)])[CMC(1)]
    0.5
    """

    rank: int

    def __post_init__(self) -> None:
        check_cutoff(self.rank, name="rank")

    @property
    def label(self) -> str:
        """``CMC@k``."""
        return f"CMC@{self.rank}"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return hit_probability(groups, self.rank)


@dataclass(frozen=True)
class RecallAtK(CutoffMeasure):
    """Recall@K of caption retrieval: the share of queries with at least one relevant item among the first ``cutoff``.

    With several captions per image an image query counts its best caption, as in the usual five-caption protocol
    (VSE; Karpathy & Fei-Fei, CVPR 2015): give :class:`~diptych.metrics.SameLabel` the image of each caption. The same
    number as :class:`~diptych.metrics.CMC`, under the name of that literature.

    >>> from diptych.metrics import RecallAtK, SameLabel, evaluate_scores
    >>> relevance = SameLabel([0, 1], [0, 0, 1, 1])
    >>> scores = [[0.1, 0.9, 0.3, 0.2], [0.8, 0.1, 0.2, 0.3]]
    >>> result = evaluate_scores(scores, relevance, [RecallAtK(1), RecallAtK(2)])
    >>> result[RecallAtK(1)], result[RecallAtK(2)]
    (0.5, 1.0)
    """

    @property
    def label(self) -> str:
        """``R@k``."""
        return f"R@{self.cutoff}"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return hit_probability(groups, self.cutoff)


def hit_probability(groups: RankedGroups, cutoff: int) -> FloatArray:
    """Return the probability that each query finds a relevant item among the first ``cutoff``."""
    inside = groups.inside(effective_cutoff(cutoff, groups))
    found = np.zeros(groups.n_queries)
    for index in groups.first[inside[groups.first] > 0]:
        size, hits, reach = int(groups.size[index]), int(groups.hits[index]), int(inside[index])
        found[groups.query[index]] = 1.0 if hits == size else 1.0 - miss_probability(size, hits, reach)
    return found


class FirstRankMeasure(Measure):
    """A measure of the rank of the first relevant item, N + (n + 1) / (r + 1) in expectation under ties."""

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        first = groups.first
        ranks = np.zeros(groups.n_queries)
        ranks[groups.query[first]] = groups.before[first] + (groups.size[first] + 1) / (groups.hits[first] + 1)
        return ranks

    def worst(self, groups: RankedGroups) -> FloatArray:
        """Return the rank after the last item."""
        return groups.gallery + 1.0


@dataclass(frozen=True)
class MeanRank(FirstRankMeasure):
    """The mean rank of the first relevant item, 1 being best.

    Under ties the expected rank is N + (n + 1) / (r + 1) for the first group with relevant items. A query without
    relevant items counts as one beyond the gallery when it is not skipped. One lost query can move the mean far;
    read it beside :class:`~diptych.metrics.MedianRank`.

    >>> from diptych.metrics import MeanRank, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]], relevance, [MeanRank()])[MeanRank()]
    1.5
    """

    label = "mean rank"


@dataclass(frozen=True)
class MedianRank(FirstRankMeasure):
    """The median rank of the first relevant item: ⌊median of the 0-based ranks⌋ + 1.

    This is the convention of caption retrieval evaluators (VSE): for an even number of queries the middle is rounded
    down. Values per query are expected ranks under ties, as in :class:`~diptych.metrics.MeanRank`; the chance level is
    the median over queries and random orders together.

    >>> from diptych.metrics import MedianRank, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]], relevance, [MedianRank()])[MedianRank()]
    1.0
    """

    label = "median rank"

    def aggregate(self, values: FloatArray) -> float:
        """Return ⌊median(rank − 1)⌋ + 1, NaN left out."""
        return float(np.floor(np.median(values[~np.isnan(values)] - 1)) + 1)

    def chance(self, tied: RankedGroups) -> float:
        """Return the smallest rank that half of all queries reach under random orders."""
        reached = np.cumsum(first_rank_distribution(tied)) / tied.n_queries
        return float(np.searchsorted(reached, 0.5 - 1e-12) + 1)


def first_rank_distribution(groups: RankedGroups) -> FloatArray:
    """Return, for every rank from 1 on, the expected number of queries whose first relevant item stands there."""
    first = groups.first
    shapes, counts = np.unique(
        np.column_stack([groups.before[first], groups.size[first], groups.hits[first]]), axis=0, return_counts=True
    )
    expected = np.zeros(int(groups.gallery.max()))
    for (before, size, hits), count in zip(shapes.tolist(), counts.tolist(), strict=True):
        share = _first_position(size, hits)
        expected[before : before + len(share)] += count * share
    return expected


def _first_position(size: int, hits: int) -> FloatArray:
    """Return the distribution of the first relevant position in a random order of a group.

    It is cut where less than e⁻⁴⁵ is left, so that large groups cost what their relevant share asks for.
    """
    length = min(size - hits + 1, -(-_NEGLIGIBLE_LOG * size // hits))
    drawn = np.arange(length, dtype=np.float64)
    missed = np.concatenate([[1.0], np.cumprod((size - hits - drawn) / (size - drawn))])
    return cast(FloatArray, -np.diff(missed))


@dataclass(frozen=True)
class FOSCTTM(Measure):
    """Fraction of samples closer than the true match: 0 is perfect, ½ is chance, 1 is reversed.

    For each relevant item the share of the irrelevant ones that are ranked above it, ties counting half, then the mean.
    Other relevant items, such as further captions of a photograph, are left out of the count. It moves long before
    recall does, so that it tells whether an alignment with few or no pairs found anything at all.

    >>> from diptych.metrics import FOSCTTM, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat"], ["cat", "dog", "owl", "elk"])
    >>> evaluate_scores([[0.5, 0.9, 0.5, 0.1]], relevance, [FOSCTTM()])[FOSCTTM()]
    0.5
    """

    label = "FOSCTTM"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        above = groups.before - groups.relevant_before + (groups.size - groups.hits) / 2
        others = groups.gallery - groups.n_relevant
        closer = groups.sum_by_query(groups.hits * above) / np.maximum(groups.n_relevant, 1)
        return np.where(others > 0, closer / np.maximum(others, 1), 0.5)

    def worst(self, groups: RankedGroups) -> FloatArray:
        """Return 1: everything else is closer."""
        return np.ones(groups.n_queries)


@dataclass(frozen=True)
class CMCCurve(Curve):
    """The share of queries whose first relevant item has rank ≤ k, for every k; exact in expectation under ties.

    Its value at k is :class:`~diptych.metrics.CMC` of k.

    >>> from diptych.metrics import CMCCurve, SameLabel, evaluate_scores
    >>> result = evaluate_scores([[0.5, 0.5, 0.1]], SameLabel(["cat"], ["cat", "dog", "dog"]), [CMCCurve()])
    >>> result[CMCCurve()].y
    array([0.5, 1. , 1. ])
    """

    label = "CMC curve"

    def total(self, groups: RankedGroups) -> FloatArray:
        """Return the expected number of queries that match first at each rank."""
        return first_rank_distribution(groups)

    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return matched queries against rank."""
        matched = np.minimum(np.cumsum(total) / n_queries, 1.0)
        return CurvePoints(np.arange(1.0, len(total) + 1), matched, "rank", "matched queries")
