"""Which class a ranking speaks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.precision_recall import AP
from diptych.metrics.relevance import shared_class_indices
from diptych.metrics.score_ranking import check_points, matrix_blocks, point_blocks, rank_classes
from diptych.space import Direction, Space

# Ranking all classes keeps every item of a query in several arrays at once.
_BYTES_PER_ITEM = 320


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
