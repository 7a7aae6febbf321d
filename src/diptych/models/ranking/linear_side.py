"""One side of a linear ranking model while it is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.models.linear import check_varies, column_deviations, column_means


@dataclass(frozen=True, eq=False)
class LinearSide:
    """Features, their means and scales, and the weights that map scaled features to points.

    Features are divided by ``scale``, the deviation of their column times √(number of columns): rows then have a length
    of about 1 whatever the features are, and one learning rate fits all of them.

    >>> import numpy as np
    >>> from diptych.models.ranking.linear_side import LinearSide
    >>> side = LinearSide.of(np.array([[1.0, 5.0], [3.0, 5.0]]), name="images")
    >>> round(float(side.features(np.array([1]))[0, 0]), 4)
    0.7071
    """

    rows: FloatArray
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, *, name: str) -> LinearSide:
        """Measure ``rows``, which must not be all the same; there are no weights yet."""
        check_varies(rows, name=name)
        mean = column_means(rows)
        width = rows.shape[1]
        return cls(rows, mean, column_deviations(rows, mean) * np.sqrt(width), np.zeros((width, 0), dtype=np.float32))

    @property
    def projection(self) -> FloatArray:
        """What maps centred rows to points."""
        return np.asarray(self.weights / self.scale[:, None], dtype=np.float64)

    def features(self, chosen: IntArray) -> FloatArray:
        """Return the chosen rows, centred and scaled, in the precision of the weights."""
        return np.asarray((self.rows[chosen] - self.mean) / self.scale, dtype=self.weights.dtype)

    def points(self, chosen: IntArray) -> FloatArray:
        """Return the points of the chosen rows."""
        return np.asarray(self.features(chosen) @ self.weights)
