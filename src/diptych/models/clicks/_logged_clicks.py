"""What the models share that answer from the log itself: by its queries, or by the clicks of similar queries."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, row_blocks, unit_rows
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.lru_cache import LRUCache
from diptych.models.clicks.click_model import ClickModel, WordSets, query_table
from diptych.models.parameters import Count, Fraction

ClickScale = Literal["log1p", "log"]
CLICK_SCALES: tuple[ClickScale, ...] = ("log1p", "log")


def scaled_clicks(clicks: FloatArray, scale: ClickScale) -> FloatArray:
    """Return log(1 + clicks), or the logarithm that Dong et al. (2018) print, under which one click counts nothing.

    Fractions, of clicks corrected for their position, count nothing there either: no click is an objection.

    >>> import numpy as np
    >>> from diptych.models.clicks._logged_clicks import scaled_clicks
    >>> scaled_clicks(np.array([0.5, 1.0, 7.0]), "log1p").round(2).tolist()
    [0.41, 0.69, 2.08]
    >>> scaled_clicks(np.array([0.5, 1.0, 7.0]), "log").round(2).tolist()
    [0.0, 0.0, 1.95]
    """
    numbers = np.asarray(clicks, dtype=np.float64)
    return np.log1p(numbers) if scale == "log1p" else np.log(np.maximum(numbers, 1))


class LoggedClickModel(ClickModel):
    """A model that keeps the log, as `query_table` makes it: who clicked what is looked up when a query comes."""

    clicks: ClickScale

    words_: tuple[str, ...]
    set_offsets_: IntArray
    set_words_: IntArray
    click_offsets_: IntArray
    clicked_images_: IntArray
    clicks_: FloatArray
    images_: FloatArray

    def _fit_clicks(self, log: ClickLog, images: FloatArray) -> None:
        # What was derived from an earlier fit.
        for name in [name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)]:
            delattr(self, name)
        sets, table = query_table(log)
        self.words_, self.set_offsets_, self.set_words_ = sets.words, sets.offsets, sets.members
        self.click_offsets_ = table.indptr.astype(np.int64)
        self.clicked_images_, self.clicks_ = table.indices.astype(np.int32), table.data.astype(np.float32)
        self.images_ = self._kept_images(images)

    def neighbours(self, query: str) -> list[tuple[tuple[str, ...], float]]:
        """Return the log queries, as words, that answer for ``query``, and how similar they are."""
        self._check_fitted()
        found, similarities = self._neighbours(query)
        return [(self._sets[int(number)], float(share)) for number, share in zip(found, similarities, strict=True)]

    def _neighbours(self, query: str) -> tuple[IntArray, FloatArray]:
        return self._sets.nearest(clean_query(query), len(self._sets))

    def _kept_images(self, images: FloatArray) -> FloatArray:
        return unit_rows(images.astype(np.float32, copy=False))

    @cached_property
    def _sets(self) -> WordSets:
        return WordSets(self.words_, self.set_offsets_, self.set_words_)


class WeightedImages(NamedTuple):
    """Rows of log pictures, ascending and distinct, and how much each counts.

    >>> import numpy as np
    >>> from diptych.models.clicks._logged_clicks import WeightedImages
    >>> first, other = WeightedImages(np.array([3, 5]), np.array([1.0, 2.0])), WeightedImages(np.array([3]), np.ones(1))
    >>> both = WeightedImages.added([first, other], [1.0, 0.5])
    >>> both.rows.tolist(), both.weights.tolist(), both.heaviest(1).rows.tolist()
    ([3, 5], [1.5, 2.0], [5])
    """

    rows: IntArray
    weights: FloatArray

    @classmethod
    def added(cls, lists: Sequence[Self], factors: Sequence[float] | FloatArray) -> Self:
        """Return the union of ``lists`` with the sums of factor times weight, without those that come to nothing."""
        if not lists:
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0))
        weights = np.concatenate([part.weights * factor for part, factor in zip(lists, factors, strict=True)])
        rows, places = np.unique(np.concatenate([part.rows for part in lists]), return_inverse=True)
        totals = np.asarray(np.bincount(places, weights=weights, minlength=len(rows)), dtype=np.float64)
        return cls(rows[totals > 0], totals[totals > 0])

    def heaviest(self, count: int) -> Self:
        """Return the ``count`` of the largest weights; of equals the earlier rows."""
        if len(self.rows) <= count:
            return self
        kept = np.sort(np.argsort(-self.weights, kind="stable")[:count])
        return type(self)(self.rows[kept], self.weights[kept])


Answer = TypeVar("Answer")


class AnswerCache(Generic[Answer]):
    """Remembers the ``limit`` answers that were used last; several threads may ask. Copies start empty.

    >>> from diptych.models.clicks._logged_clicks import AnswerCache
    >>> answers = AnswerCache(2)
    >>> for word in ("a", "b", "c"):
    ...     answers.put(word, word.upper())
    >>> answers.get("a"), answers.get("c")
    (None, 'C')
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._answers = LRUCache[Hashable, Answer](limit)
        self._lock = Lock()

    def get(self, question: Hashable) -> Answer | None:
        with self._lock:
            return self._answers.get(question)

    def put(self, question: Hashable, answer: Answer) -> None:
        with self._lock:
            self._answers[question] = answer

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self.limit)

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self.limit,)


# A service hears the same queries over and over. Long lists are made again: together they would fill the memory.
_REMEMBERED, _LONGEST_REMEMBERED = 4096, 1000
# Pictures added up at a time.
_BLOCK_ROWS = 8192


@dataclass(kw_only=True, eq=False, repr=False)
class NeighbourQueryModel(LoggedClickModel):
    """A query is what its neighbours clicked: at most ``n_neighbours`` log queries of ``min_similarity`` or more.

    A query that is in the log itself, as a set of words, is its own and only neighbour.
    """

    n_neighbours: Count = 30
    min_similarity: Fraction = 0.3
    clicks: ClickScale = "log1p"

    def answers(self, query: str) -> bool:
        """Tell whether a similar query was ever clicked; all scores are 0 otherwise."""
        self._check_fitted()
        return len(self._clicked(query).rows) > 0

    def _neighbours(self, query: str) -> tuple[IntArray, FloatArray]:
        found, similarities = self._sets.nearest(clean_query(query), self.n_neighbours, self.min_similarity)
        if len(found) and similarities[0] == 1:
            return found[:1], similarities[:1]
        return found, similarities

    def _clicked(self, query: str) -> WeightedImages:
        # With the parameters, which a study of their influence changes without fitting again.
        question = (query, *self.get_params(deep=False).values())
        known = self._cache.get(question)
        if known is None:
            known = self._weighted_images(query)
            if len(known.rows) <= _LONGEST_REMEMBERED:
                self._cache.put(question, known)
        return known

    def _weighted_images(self, query: str) -> WeightedImages:
        """Return the pictures of all neighbours, weighted by Σ_j Jaccard(q, q_j)·log click_ij."""
        found, similarities = self._neighbours(query)
        return WeightedImages.added([self._clicks_of(number) for number in found], similarities)

    def _clicks_of(self, number: int) -> WeightedImages:
        entries = slice(self.click_offsets_[number], self.click_offsets_[number + 1])
        return WeightedImages(self.clicked_images_[entries], scaled_clicks(self.clicks_[entries], self.clicks))

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return unit_rows(images)

    def _encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return Σ weight·x/‖x‖ over the pictures that stand for each query; zero where there are none."""
        points = np.zeros((len(queries), self.images_.shape[1]))
        for row, query in enumerate(queries):
            clicked = self._clicked(query)
            for block in row_blocks(len(clicked.rows), _BLOCK_ROWS):
                points[row] += clicked.weights[block] @ self.images_[clicked.rows[block]].astype(np.float64)
        return points.astype(np.float32)

    @cached_property
    def _cache(self) -> AnswerCache[WeightedImages]:
        return AnswerCache(_REMEMBERED)
