"""One side's features as networks want them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import FloatArray, IntArray
from diptych.models.linear import check_varies, column_deviations, column_means


@dataclass(frozen=True)
class StandardView:
    """Features with their means and deviations; rows are scaled when they are asked for, never all at once.

    >>> import numpy as np
    >>> from diptych.models.neural.standard_view import StandardView
    >>> view = StandardView.of(np.array([[1.0, 5.0], [3.0, 5.0]]), name="images")
    >>> view.standardized(np.array([1, 0]))
    array([[ 1.,  0.],
           [-1.,  0.]], dtype=float32)
    """

    rows: FloatArray
    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, *, name: str) -> StandardView:
        """Measure ``rows``, which must not be all the same."""
        check_varies(rows, name=name)
        mean = column_means(rows)
        return cls(rows, mean, column_deviations(rows, mean))

    def standardized(self, chosen: IntArray) -> NDArray[np.float32]:
        """Return the chosen rows with zero mean and unit variance, in the precision that networks are trained in."""
        return np.asarray((self.rows[chosen] - self.mean) / self.deviation, dtype=np.float32)
