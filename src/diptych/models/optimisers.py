"""First-order optimisers of a few NumPy arrays: Adam and Adagrad."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from diptych.arrays import FloatArray, IntArray

_FIRST, _SECOND, _EPSILON, _WARM_UP = 0.9, 0.999, 1e-8, 0.1


class Adam:
    """Changes arrays in place along their gradients (Kingma and Ba, "Adam", ICLR 2015), at a `scheduled_rate`.

    >>> import numpy as np
    >>> from diptych.models.optimisers import Adam
    >>> place = np.array([3.0])
    >>> adam = Adam([place], learning_rate=0.1, steps=200)
    >>> for _ in range(200):
    ...     adam.step([2 * (place - 1)])
    >>> round(float(place[0]), 2)
    1.0
    """

    def __init__(self, arrays: Sequence[FloatArray], learning_rate: float, steps: int) -> None:
        self._arrays = arrays
        self._learning_rate = learning_rate
        self._steps = steps
        self._done = 0
        # Without NumPy's functions, because tensors on a graphics card are moved as well.
        self._means = [array * 0 for array in arrays]
        self._squares = [array * 0 for array in arrays]

    def step(self, gradients: Sequence[FloatArray]) -> None:
        """Move every array once."""
        rate = scheduled_rate(self._learning_rate, self._done, self._steps)
        self._done += 1
        corrections = 1 - _FIRST**self._done, 1 - _SECOND**self._done
        for array, gradient, mean, square in zip(self._arrays, gradients, self._means, self._squares, strict=True):
            mean += (1 - _FIRST) * (gradient - mean)
            square += (1 - _SECOND) * (gradient**2 - square)
            array -= rate * (mean / corrections[0]) / ((square / corrections[1]) ** 0.5 + _EPSILON)


def scheduled_rate(learning_rate: float, done: int, steps: int) -> float:
    """Return the rate of the next step: it grows over the first tenth of ``steps`` and falls to zero along a cosine."""
    warm = max(1, math.ceil(_WARM_UP * steps))
    if done < warm:
        return learning_rate * (done + 1) / warm
    progress = (done - warm) / max(1, steps - warm)
    return learning_rate * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


class Adagrad:
    """Changes an array in place: each entry by −rate·g/√(Σ g²) over all its gradients so far.

    Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011. Rows that
    are rarely touched, such as the weights of rare words, keep large steps, and rows that are not touched cost nothing.

    >>> import numpy as np
    >>> from diptych.models.optimisers import Adagrad
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
