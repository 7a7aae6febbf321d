"""Dense layers of tanh units, forwards and back, in NumPy."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.neural.layers import Layers


def tanh_forward(rows: FloatArray, layers: Layers) -> list[FloatArray]:
    """Return the rows and then the values of every layer; the last are the outputs, in [−1, 1]."""
    values = [rows]
    for weights, intercepts in zip(layers[::2], layers[1::2], strict=True):
        values.append(np.tanh(values[-1] @ weights + intercepts))
    return values


def tanh_backward(values: list[FloatArray], layers: Layers, slopes: FloatArray) -> list[FloatArray]:
    """Return the gradient of every weight and intercept, given the loss's slopes at the outputs."""
    gradients: list[FloatArray] = []
    for number in range(len(values) - 1, 0, -1):
        before = slopes * (1 - values[number] ** 2)
        gradients[:0] = [values[number - 1].T @ before, before.sum(axis=0)]
        slopes = before @ layers[2 * number - 2].T
    return gradients
