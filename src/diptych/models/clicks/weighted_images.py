"""Pictures that stand for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from diptych.arrays import FloatArray, IntArray


class WeightedImages(NamedTuple):
    """Rows of log pictures, ascending and distinct, and how much each counts.

    >>> import numpy as np
    >>> from diptych.models.clicks.weighted_images import WeightedImages
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
