"""Judged candidates of many queries, laid out so that trying other weights costs one sort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics import Measure, RankedGroups
from diptych.models.labels import Targets, picture_numbers

_LONGEST_BY_SHORTEST = 1.5
_LAST = np.finfo(np.float64).max


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Lists of similar length side by side in blocks, shorter ones padded.

    Scores of a block have the shape (parts, queries, candidates). Queries without a relevant candidate are left out:
    no weights change what they are worth.
    """

    n_parts: int
    blocks: tuple[_Block, ...]
    grades: FloatArray
    total: IntArray
    gallery: IntArray
    rows: IntArray

    @classmethod
    def of(cls, scores: Sequence[ArrayLike], grades: Sequence[ArrayLike]) -> RankedLists:
        """Check and lay out one (parts, candidates) matrix of scores and one list of grades for each query."""
        try:
            matrices = [np.asarray(values, dtype=np.float64) for values in scores]
            judged = [np.asarray(values, dtype=np.float64) for values in grades]
        except (TypeError, ValueError):
            raise InvalidInputError("scores and grades must be numbers, one array of each for every query") from None
        n_parts = _check(matrices, judged)
        known = np.unique(np.concatenate(judged))
        positive = known[known > 0]
        if not len(positive):
            raise InvalidInputError("no candidate of any query is relevant, so no weights are better than others")
        asked = [number for number, values in enumerate(judged) if (values > 0).any()]
        asked.sort(key=lambda number: len(judged[number]))
        blocks = tuple(_Block.of(chosen, matrices, judged, positive) for chosen in _alike(asked, judged))
        return cls(
            n_parts,
            blocks,
            positive,
            total=np.concatenate([block.total(len(positive)) for block in blocks]),
            gallery=np.concatenate([(~block.is_padding).sum(axis=1) for block in blocks]),
            rows=np.concatenate([block.rows for block in blocks]),
        )

    def fused(self, weights: ArrayLike) -> list[FloatArray]:
        """Return the weighted sums of the parts, one matrix for each block."""
        factors = np.asarray(weights, dtype=np.float64)
        return [np.tensordot(factors, block.parts, axes=1) for block in self.blocks]

    def moved(self, fused: Sequence[FloatArray], part: int, change: float) -> list[FloatArray]:
        """Return the sums after the weight of one part has changed."""
        return [total + change * block.parts[part] for total, block in zip(fused, self.blocks, strict=True)]

    def ranked(self, fused: Sequence[FloatArray]) -> RankedGroups:
        """Return the tie groups of all queries under these sums, the queries of each block after the others."""
        firsts = np.cumsum([0, *(len(block.rows) for block in self.blocks)])
        found = [
            block.groups(total, int(first), len(self.grades))
            for total, block, first in zip(fused, self.blocks, firsts[:-1], strict=True)
        ]
        query, before, size, relevant = (np.concatenate(values) for values in zip(*found, strict=True))
        return RankedGroups(query, before, size, relevant, self.total, self.gallery, self.grades, self.rows)

    def value(self, fused: Sequence[FloatArray], measure: Measure) -> float:
        """Return the measure of these rankings, aggregated over the queries."""
        return measure.aggregate(measure.compute(self.ranked(fused)))

    def is_cost(self, measure: Measure) -> bool:
        """Return True if smaller values of a measure are better, as of ranks."""
        return bool((measure.worst(RankedGroups.all_tied(self.total, self.gallery, self.grades)) > 0).any())


@dataclass(frozen=True, eq=False)
class _Block:
    """Queries with lists of similar length; ``levels`` are the places of the grades, −1 where nothing is relevant."""

    parts: FloatArray
    is_padding: BoolArray
    levels: IntArray
    rows: IntArray

    @classmethod
    def of(
        cls, chosen: Sequence[int], matrices: Sequence[FloatArray], judged: Sequence[FloatArray], positive: FloatArray
    ) -> _Block:
        width = max(len(judged[number]) for number in chosen)
        parts = np.zeros((len(matrices[0]), len(chosen), width))
        is_padding = np.ones((len(chosen), width), dtype=bool)
        levels = np.full((len(chosen), width), -1)
        for row, number in enumerate(chosen):
            count = len(judged[number])
            parts[:, row, :count] = matrices[number]
            is_padding[row, :count] = False
            levels[row, :count] = np.where(judged[number] > 0, np.searchsorted(positive, judged[number]), -1)
        return cls(parts, is_padding, levels, np.array(chosen))

    def total(self, n_levels: int) -> IntArray:
        """Return how many candidates of each grade every query has."""
        return np.stack([(self.levels == level).sum(axis=1) for level in range(n_levels)], axis=1)

    def groups(
        self, fused: FloatArray, first_query: int, n_levels: int
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return query, items before, size and relevant items of every tie group that holds any, best first."""
        # The grade travels in the last bits of the score, so that values are sorted instead of places, which is much
        # faster. Scores that agree in all other bits count as tied: sums differ by as much through rounding alone.
        carried = (1 << n_levels.bit_length()) - 1
        keys = np.where(self.is_padding, _LAST, -fused).view(np.int64) & ~carried
        ordered = np.sort((keys | (self.levels + 1)).view(np.float64), axis=1).view(np.int64)
        levels = (ordered.ravel() & carried) - 1
        values = (ordered & ~carried).view(np.float64)
        starts = np.ones(values.shape, dtype=bool)
        np.not_equal(values[:, 1:], values[:, :-1], out=starts[:, 1:])
        found = np.flatnonzero(levels >= 0)
        owner = np.cumsum(starts)[found] - 1
        is_first = np.diff(owner, prepend=-1) > 0
        counts = np.bincount((np.cumsum(is_first) - 1) * n_levels + levels[found], minlength=n_levels * is_first.sum())
        first, group = np.append(np.flatnonzero(starts), starts.size), owner[is_first]
        query, before = np.divmod(first[group], values.shape[1])
        return query + first_query, before, first[group + 1] - first[group], counts.reshape(-1, n_levels)


def _alike(numbers: Sequence[int], judged: Sequence[FloatArray]) -> Iterator[list[int]]:
    """Part queries, sorted by the length of their lists, where lengths differ much, so that little is padded."""
    chosen: list[int] = []
    for number in numbers:
        if chosen and len(judged[number]) > _LONGEST_BY_SHORTEST * len(judged[chosen[0]]):
            yield chosen
            chosen = []
        chosen.append(number)
    yield chosen


def _check(matrices: Sequence[FloatArray], judged: Sequence[FloatArray]) -> int:
    """Return the number of parts that all queries have."""
    if not matrices or len(matrices) != len(judged):
        raise InvalidInputError(
            f"give one matrix of scores and one list of grades for each query, got {len(matrices)} and {len(judged)}"
        )
    for number, (values, grades) in enumerate(zip(matrices, judged, strict=True)):
        if values.ndim != 2 or not len(values) or grades.shape != values.shape[1:]:
            raise InvalidInputError(
                f"query {number} has scores of shape {values.shape} and grades of shape {grades.shape}; scores are "
                "(parts, candidates), grades one number for each candidate"
            )
        if len(values) != len(matrices[0]):
            raise InvalidInputError(f"query {number} has {len(values)} parts, query 0 has {len(matrices[0])}")
        if not np.isfinite(values).all() or not np.isfinite(grades).all():
            raise InvalidInputError(f"query {number} has scores or grades that are not finite; leave those items out")
    return len(matrices[0])


# As many as tell weights apart; every further one makes each of hundreds of trials slower.
_MOST_PICTURES, _MOST_TEXTS = 200, 200
_FEWEST_PICTURES = 4


@dataclass(frozen=True, eq=False)
class HeldOutLists:
    """Rows to learn from, rows held out with all texts of their pictures, and which of these belong together."""

    train: IntArray
    pictures: IntArray  # One row for each held-out picture.
    texts: IntArray  # Those of some of their texts.
    grades: FloatArray  # (pictures, texts): 1 for texts of the same picture, or with labels those that share one.

    @classmethod
    def of(cls, images: FloatArray, labels: ArrayLike | None, share: float, rng: np.random.Generator) -> HeldOutLists:
        """Hold out a share of the pictures, at most a few hundred."""
        numbers = picture_numbers(images)
        n_pictures = int(numbers.max()) + 1
        wanted = min(round(share * n_pictures), _MOST_PICTURES)
        if not _FEWEST_PICTURES <= wanted <= n_pictures - _FEWEST_PICTURES:
            raise InvalidInputError(
                f"weights cannot be learned from {n_pictures} different pictures, {wanted} of them held out; "
                "give more, or take weights='average'"
            )
        is_out = np.isin(numbers, rng.choice(n_pictures, wanted, replace=False))
        out = np.flatnonzero(is_out)
        _, first = np.unique(numbers[out], return_index=True)
        pictures, texts = out[first], np.sort(rng.permutation(out)[:_MOST_TEXTS])
        return cls(np.flatnonzero(~is_out), pictures, texts, _grades(numbers, labels, pictures, texts))

    def scores(self, matrices: list[FloatArray]) -> tuple[list[AnyArray], list[AnyArray]]:
        """Return the lists of all queries and their grades, from the (pictures, texts) scores of each part."""
        stacked = np.stack(matrices)
        by_picture = [stacked[:, row] for row in range(len(self.pictures))]
        by_text = [stacked[:, :, column] for column in range(len(self.texts))]
        return by_picture + by_text, [*self.grades, *self.grades.T]


def _grades(numbers: IntArray, labels: ArrayLike | None, pictures: IntArray, texts: IntArray) -> FloatArray:
    if labels is None:
        return np.asarray(numbers[pictures][:, None] == numbers[texts], dtype=np.float64)
    indicator = Targets.from_labels(labels, len(numbers)).indicator
    return np.asarray(indicator[pictures] @ indicator[texts].T > 0, dtype=np.float64)
