"""Training of a linear map of pictures so that clicked ones score above others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.models.clicks.adagrad import Adagrad
from diptych.models.clicks.query_side import QuerySide

Triplets = tuple[IntArray, IntArray, IntArray]

_BLOCK_ROWS = 4096


class MarginRanking:
    """Minimises the mean of max(0, m − ⟨Wᵀx⁺, t⟩ + ⟨Wᵀx⁻, t⟩) over triplets of a query t and two pictures.

    The loss depends on x⁺ − x⁻ alone, so that one product gives both scores. Features are divided by ``scale``.

    >>> import numpy as np
    >>> from diptych.models.clicks.fixed_queries import FixedQueries
    >>> from diptych.models.clicks.margin_ranking import MarginRanking
    >>> ranking = MarginRanking(np.eye(2), np.ones(2), FixedQueries(np.eye(2)), np.zeros((2, 2)), margin=1.0)
    >>> both = np.array([0, 1]), np.array([0, 1]), np.array([1, 0])
    >>> ranking.loss(both)
    1.0
    >>> _ = ranking.train([both] * 20, rate=0.1)
    >>> ranking.loss(both)
    0.0
    """

    def __init__(
        self, images: FloatArray, scale: FloatArray, queries: QuerySide, weights: FloatArray, *, margin: float
    ) -> None:
        self._images = images
        self._scale = scale.astype(weights.dtype)
        self._queries = queries
        self._adagrad = Adagrad(weights)
        self._margin = margin

    @property
    def weights(self) -> FloatArray:
        """W, which maps scaled features to points."""
        return self._adagrad.array

    def train(self, batches: Iterable[Triplets], *, rate: float) -> float:
        """Take one step per batch and return the mean loss before the steps."""
        total, count = 0.0, 0
        for queries, positives, negatives in batches:
            points, gaps = self._queries.points(queries), self._gaps(positives, negatives)
            moved = gaps @ self.weights
            losses = self._losses(points, moved)
            total, count = total + float(losses.sum(dtype=np.float64)), count + len(losses)
            wrong = losses > 0
            if wrong.any():
                share = 1 / len(losses)
                self._adagrad.step(-share * (gaps[wrong].T @ points[wrong]), rate=rate)
                self._queries.move(queries[wrong], -share * moved[wrong], rate=rate)
        return total / max(1, count)

    def loss(self, triplets: Triplets) -> float:
        """Return the mean loss of triplets."""
        queries, positives, negatives = triplets
        total = 0.0
        for rows in row_blocks(len(queries), _BLOCK_ROWS):
            moved = self._gaps(positives[rows], negatives[rows]) @ self.weights
            total += float(self._losses(self._queries.points(queries[rows]), moved).sum(dtype=np.float64))
        return total / max(1, len(queries))

    def _gaps(self, positives: IntArray, negatives: IntArray) -> FloatArray:
        return np.asarray((self._images[positives] - self._images[negatives]) / self._scale, dtype=self.weights.dtype)

    def _losses(self, points: FloatArray, moved: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(0, self._margin - np.einsum("ij,ij->i", points, moved)))
