"""Steps that shrink where an entry has moved before."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray

_EPSILON = 1e-8


class Adagrad:
    """Changes an array in place: each entry by −rate·g/√(Σ g²) over all its gradients so far.

    Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011. Rows that
    are rarely touched, such as the weights of rare words, keep large steps, and rows that are not touched cost nothing.

    >>> import numpy as np
    >>> from diptych.models.clicks.adagrad import Adagrad
    >>> place = np.array([[3.0], [7.0]])
    >>> adagrad = Adagrad(place)
    >>> for _ in range(300):
    ...     adagrad.step_rows(np.array([0]), 2 * (place[:1] - 1), rate=0.5)
    >>> place.round(2).tolist()
    [[1.0], [7.0]]
    """

    def __init__(self, array: FloatArray) -> None:
        self.array = array
        self._squares = np.zeros_like(array)

    def step(self, gradient: FloatArray, *, rate: float) -> None:
        """Move the whole array."""
        self._squares += gradient**2
        self.array -= rate * gradient / (np.sqrt(self._squares) + _EPSILON)

    def step_rows(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Move distinct rows."""
        self._squares[rows] += gradient**2
        self.array[rows] -= rate * gradient / (np.sqrt(self._squares[rows]) + _EPSILON)
