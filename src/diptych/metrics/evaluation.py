"""Evaluate a ranking in one pass, a block of queries at a time: per query, in the mean, per category and class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import AnyArray, FloatArray, IntArray, row_blocks
from diptych.devices import card_for
from diptych.errors import InvalidInputError
from diptych.metrics.hamming import HammingRanking
from diptych.metrics.interpolated_precision import InterpolatedPrecisionRecall
from diptych.metrics.measure import Curve, CurvePoints, Measure, RankedGroups, Ties, break_ties, check_ties
from diptych.metrics.precision_recall import AP
from diptych.metrics.relevance import Relevance, shared_class_indices
from diptych.metrics.score_ranking import (
    CardRanking,
    check_points,
    matrix_blocks,
    point_blocks,
    rank_classes,
    ranked_blocks,
)
from diptych.space import DIRECTIONS, Direction, Space

EmptyQueryPolicy = Literal["skip", "zero"]
DEFAULT_MEMORY = 1 << 28
# Bytes that ranking and measuring hold at once, counted generously: per tie group a dozen arrays, per bin of a
# histogram the counts and their sums, per score the score itself.
_GROUP_BYTES = 160
_LEVEL_BYTES = 40
_BIN_BYTES = 48
_SCORE_BYTES = 8
# Tie groups that are measured at once: few enough for the caches, many enough that cores seldom wait for one another.
_CACHED_GROUPS = 1 << 16
# A score that is sorted takes the time of so many multiply-adds.
_SORTING = 300
_FLOAT = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
# Ranking all classes keeps every item of a query in several arrays at once.
_BYTES_PER_ITEM = 320


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What an evaluation measured, and under which conventions.

    ``mean`` holds one number per measure (for ranks, what the measure's ``aggregate`` makes of them), ``values`` one
    per query with NaN where the query was skipped, ``curves`` the points of each curve, ``chance`` the exact value a
    random ranker has. ``evaluation[measure]`` is short for ``evaluation.mean[measure]``, ``evaluation[curve]`` for
    ``evaluation.curves[curve]``.

    >>> from diptych.metrics import AP, SameLabel, evaluate_scores
    >>> result = evaluate_scores([[0.9, 0.1]], SameLabel([0], [0, 1]), [AP()])
    >>> result[AP()], result.chance[AP()], result.n_without_relevant
    (1.0, 0.75, 0)
    """

    mean: dict[Measure, float]
    values: dict[Measure, FloatArray]
    curves: dict[Curve, CurvePoints]
    chance: dict[Measure, float]
    n_queries: int
    n_without_relevant: int
    ties: Ties
    empty: EmptyQueryPolicy

    @overload
    def __getitem__(self, measure: Measure) -> float: ...

    @overload
    def __getitem__(self, measure: Curve) -> CurvePoints: ...

    def __getitem__(self, measure: Measure | Curve) -> float | CurvePoints:
        if isinstance(measure, Measure) and measure in self.mean:
            return self.mean[measure]
        if isinstance(measure, Curve) and measure in self.curves:
            return self.curves[measure]
        measured = ", ".join(repr(known) for known in (*self.mean, *self.curves))
        raise InvalidInputError(f"{measure!r} was not measured; measured were {measured}")

    def __contains__(self, measure: Measure | Curve) -> bool:
        return measure in self.mean or measure in self.curves


def evaluate(
    queries: AnyArray,
    gallery: AnyArray,
    space: Space,
    relevance: Relevance,
    measures: Sequence[Measure | Curve],
    *,
    direction: Direction = "image_query",
    ties: Ties = "expected",
    empty: EmptyQueryPolicy = "skip",
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
) -> Evaluation:
    """Rank the gallery for every query and measure the rankings.

    ``queries`` and ``gallery`` are points of ``space``; ``direction`` says which side the queries are. ``relevance``
    knows which items are relevant, ``measures`` are measures and curves in any mixture: one pass fills all of them.
    ``ties`` is ``expected`` (exact expectation over the orders of tied items), ``random`` with ``seed``, ``optimistic``
    or ``pessimistic``. A query without relevant items is left out (``empty="skip"``) or counts as found nothing
    (``"zero"``); the result reports how many there are.

    Scores are never held for more queries than ``memory`` bytes allow, down to one query against the gallery. Codes in
    a Hamming space are ranked by histograms of distances, without sorting. The scores of the other spaces are compared
    exactly as the space computes them: equal scores tie, nearly equal ones do not. Items with equal points always tie.
    Large galleries are ranked on a graphics card where there is one (``DIPTYCH_DEVICE``); its scores equal those of the
    processor to rounding.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.metrics import AP, RecallAtK, SameLabel, evaluate
    >>> images, texts = np.eye(3), np.eye(3) + 0.1
    >>> result = evaluate(images, texts, Space("cosine"), SameLabel([0, 1, 2], [0, 1, 2]), [AP(), RecallAtK(1)])
    >>> result[AP()], result[RecallAtK(1)]
    (1.0, 1.0)
    """
    queries, gallery = np.asarray(queries), np.asarray(gallery)
    check_points(queries, gallery, n_queries=relevance.n_queries, n_gallery=relevance.n_gallery)
    if direction not in DIRECTIONS:
        raise InvalidInputError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
    tally = _RunningTotals(relevance, measures, ties, empty, seed)
    form = space.indexable(direction)
    if form is not None and form.metric == "hamming":
        ranking = HammingRanking(form.queries(queries), form.gallery(gallery), relevance)
        n_groups = relevance.most if tally.splits_groups else min(relevance.most, ranking.bits + 1)
        histograms = _BIN_BYTES * (ranking.bits + 1) * (1 + len(relevance.grades))
        per_query = _bytes_of_groups(n_groups, relevance) + histograms
        for rows in row_blocks(len(queries), _rows(memory - relevance.n_gallery, per_query)):
            tally.add(ranking.rank(rows))
        return tally.result()
    card = card_for(queries.size * len(gallery) + _SORTING * len(queries) * len(gallery))
    if card is not None and form is not None and {queries.dtype, gallery.dtype} <= {_FLOAT, _DOUBLE}:
        for groups in CardRanking(card, form, queries, gallery, relevance).groups(_CACHED_GROUPS):
            tally.add(groups)
        return tally.result()
    per_query = _bytes_of_groups(relevance.most, relevance) + _SCORE_BYTES * relevance.n_gallery
    blocks = point_blocks(queries, gallery, space, direction, rows=_rows(memory // 2, per_query), memory=memory // 4)
    return _measure(blocks, relevance, tally)


def evaluate_scores(
    scores: ArrayLike | Iterable[ArrayLike],
    relevance: Relevance,
    measures: Sequence[Measure | Curve],
    *,
    ties: Ties = "expected",
    empty: EmptyQueryPolicy = "skip",
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
) -> Evaluation:
    """Measure rankings given by scores, larger is better.

    ``scores`` is a matrix, queries × gallery, or an iterator over consecutive blocks of its rows, for scores too many
    to hold. Otherwise as :func:`evaluate`; ``memory`` bounds what is used besides the scores.

    >>> from diptych.metrics import AP, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog"])
    >>> evaluate_scores(iter([[[0.9, 0.1]], [[0.8, 0.2]]]), relevance, [AP()])[AP()]
    0.75
    """
    tally = _RunningTotals(relevance, measures, ties, empty, seed)
    rows = _rows(memory, _bytes_of_groups(relevance.most, relevance))
    return _measure(matrix_blocks(scores, n_gallery=relevance.n_gallery, rows=rows), relevance, tally)


def _measure(blocks: Iterable[AnyArray], relevance: Relevance, tally: _RunningTotals) -> Evaluation:
    for scores in blocks:
        if tally.done + len(scores) > relevance.n_queries:
            raise InvalidInputError(f"scores have more rows than the relevance has queries, {relevance.n_queries}")
        for groups in ranked_blocks(scores, relevance, tally.done, _CACHED_GROUPS // max(1, relevance.most)):
            tally.add(groups)
    return tally.result()


def _rows(memory: int, per_query: int) -> int:
    return max(1, memory // per_query)


def _bytes_of_groups(n_groups: int, relevance: Relevance) -> int:
    return (_GROUP_BYTES + _LEVEL_BYTES * len(relevance.grades)) * max(1, n_groups)


class _RunningTotals:
    """Collects values and curves block by block."""

    def __init__(
        self, relevance: Relevance, measures: Sequence[Measure | Curve], ties: Ties, empty: EmptyQueryPolicy, seed: int
    ) -> None:
        check_ties(ties)
        if empty not in get_args(EmptyQueryPolicy):
            raise InvalidInputError(f"empty must be one of {', '.join(get_args(EmptyQueryPolicy))}, got {empty!r}")
        unknown = [measure for measure in measures if not isinstance(measure, Measure | Curve)]
        if unknown or not len(measures):
            wrong = f"got {unknown[0]!r}" if unknown else "got none"
            raise InvalidInputError(f"measures must be measures or curves such as AP() or CMCCurve(), {wrong}")
        self.done = 0
        self._relevance, self._ties, self._empty, self._seed = relevance, ties, empty, seed
        self._values = {
            measure: np.full(relevance.n_queries, np.nan) for measure in measures if isinstance(measure, Measure)
        }
        self._curves: dict[Curve, FloatArray] = {curve: np.zeros(1) for curve in measures if isinstance(curve, Curve)}
        self._total = np.zeros((relevance.n_queries, len(relevance.grades)), dtype=np.int64)
        self._gallery = np.zeros(relevance.n_queries, dtype=np.int64)

    @property
    def splits_groups(self) -> bool:
        """Whether tie groups are turned into single items, which takes memory in proportion to the relevant items."""
        return self._ties != "expected" or any(isinstance(curve, InterpolatedPrecisionRecall) for curve in self._curves)

    def add(self, groups: RankedGroups) -> None:
        """Measure one block of queries."""
        rows = slice(self.done, self.done + groups.n_queries)
        self._total[rows], self._gallery[rows] = groups.total, groups.gallery
        groups = break_ties(groups, self._ties, self._seed)
        for measure, values in self._values.items():
            values[rows] = measure.compute(groups)
            if self._empty == "zero":
                values[rows] = np.where(groups.n_relevant > 0, values[rows], measure.worst(groups))
        for curve, total in self._curves.items():
            self._curves[curve] = _add_from_start(total, curve.total(groups))
        self.done = rows.stop

    def result(self) -> Evaluation:
        """Average over the queries."""
        if self.done != self._relevance.n_queries:
            raise InvalidInputError(
                f"scores have {self.done} rows, but the relevance knows {self._relevance.n_queries} queries"
            )
        has_relevant = self._total.sum(axis=1) > 0
        if self._empty == "skip" and not has_relevant.any():
            raise InvalidInputError("no query has a relevant item in the gallery; check that both use the same labels")
        counted = has_relevant | (self._empty == "zero")
        tied = RankedGroups.all_tied(self._total[counted], self._gallery[counted], self._relevance.grades)
        return Evaluation(
            mean={measure: measure.aggregate(values) for measure, values in self._values.items()},
            values=self._values,
            curves={curve: curve.points(total, len(tied.gallery)) for curve, total in self._curves.items()},
            chance={measure: measure.chance(tied) for measure in self._values},
            n_queries=self.done,
            n_without_relevant=int((~has_relevant).sum()),
            ties=self._ties,
            empty=self._empty,
        )


def _add_from_start(total: FloatArray, more: FloatArray) -> FloatArray:
    """Add two arrays whose last axes may differ in length."""
    if total.shape[-1] < more.shape[-1] or total.ndim < more.ndim:
        total, more = more.copy(), total
    total[..., : more.shape[-1]] += more
    return total


def category_means(values: FloatArray, labels: ArrayLike) -> dict[Any, float]:
    """Return the mean of ``values`` over the queries of each category; with average precision, MAP per category.

    ``values`` are those that an evaluation keeps per query, ``labels`` the true classes of the queries (Costa Pereira
    et al., TPAMI 2014, fig. 11). Skipped queries (NaN) are left out, and categories that have no others. The unweighted
    mean of the result is not MAP, which weights categories by their queries.

    >>> import numpy as np
    >>> from diptych.metrics import category_means
    >>> category_means(np.array([0.2, 0.4, 0.9]), ["art", "art", "music"])
    {'art': 0.30000000000000004, 'music': 0.9}
    """
    classes = np.asarray(labels)
    numbers = np.asarray(values, dtype=np.float64)
    if classes.ndim != 1 or numbers.shape != classes.shape:
        raise InvalidInputError(
            f"values and labels must be lists with one entry per query, got shapes {numbers.shape} and {classes.shape}"
        )
    known = ~np.isnan(numbers)
    names, codes = np.unique(classes[known], return_inverse=True)
    means = np.bincount(codes, weights=numbers[known]) / np.bincount(codes)
    return dict(zip(names.tolist(), means.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """How often queries of each class are answered by a ranking that suits another class best.

    For a query, AP_c is the average precision of its ranking with class c as the relevant set; the predicted class is
    the c with the largest AP_c, the first in sorted order when several are equal (Costa Pereira et al., TPAMI 2014,
    fig. 10). Rows of ``counts`` are true classes, columns predicted ones. AP_c is the exact expectation under ties. Use
    it to see which classes a space confuses; as a classifier it is not ideal, because it ranks the test set itself.

    >>> from diptych.metrics import ConfusionMatrix
    >>> scores = [[0.9, 0.8, 0.1], [0.9, 0.2, 0.1]]
    >>> matrix = ConfusionMatrix.from_scores(scores, ["cat", "dog"], ["cat", "cat", "dog"])
    >>> matrix.counts
    array([[1, 0],
           [1, 0]])
    """

    classes: NDArray[Any]
    counts: IntArray

    @property
    def rates(self) -> FloatArray:
        """The counts divided by their row sums; rows of classes without queries are zero."""
        return cast(FloatArray, self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1))

    @classmethod
    def from_points(
        cls,
        queries: AnyArray,
        gallery: AnyArray,
        space: Space,
        query_labels: ArrayLike,
        gallery_labels: ArrayLike,
        *,
        direction: Direction = "image_query",
        memory: int = 1 << 28,
    ) -> ConfusionMatrix:
        """Score points in their space, a block of queries at a time, and count."""
        n_queries, n_gallery = np.size(query_labels), np.size(gallery_labels)
        check_points(queries, gallery, n_queries=n_queries, n_gallery=n_gallery)
        rows = _rows_per_block(n_gallery, memory)
        blocks = point_blocks(queries, gallery, space, direction, rows=rows, memory=memory // 4)
        return cls._count(blocks, query_labels, gallery_labels)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike | Iterable[ArrayLike],
        query_labels: ArrayLike,
        gallery_labels: ArrayLike,
        *,
        memory: int = 1 << 28,
    ) -> ConfusionMatrix:
        """Count from a matrix of scores, queries × gallery, or an iterator over blocks of its rows."""
        n_gallery = np.size(gallery_labels)
        blocks = matrix_blocks(scores, n_gallery=n_gallery, rows=_rows_per_block(n_gallery, memory))
        return cls._count(blocks, query_labels, gallery_labels)

    @classmethod
    def _count(cls, blocks: Iterable[AnyArray], query_labels: ArrayLike, gallery_labels: ArrayLike) -> ConfusionMatrix:
        true, codes, classes = shared_class_indices(query_labels, gallery_labels)
        predicted: list[IntArray] = []
        done = 0
        for scores in blocks:
            precision = AP().compute(rank_classes(scores, codes, len(classes), done)).reshape(-1, len(classes))
            # A class that the gallery lacks cannot be answered and is never predicted.
            predicted.append(np.argmax(np.where(np.isnan(precision), -1.0, precision), axis=1))
            done += len(scores)
        if done != len(true):
            raise InvalidInputError(f"scores have {done} rows, but there are {len(true)} query labels")
        cells = true * len(classes) + np.concatenate(predicted)
        counts = np.bincount(cells, minlength=len(classes) ** 2).reshape(len(classes), len(classes))
        return cls(classes, counts)


def _rows_per_block(n_gallery: int, memory: int) -> int:
    return max(1, memory // (2 * _BYTES_PER_ITEM * n_gallery))
