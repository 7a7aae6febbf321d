"""Dense layers as NumPy arrays, the features they read, and the rows kept out of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import FloatArray, IntArray, map_rows
from diptych.models.linear import centre, check_varies, column_deviations, column_means

# Weights and intercepts in turn, from the input to the output.
Layers = list[FloatArray]
Activation = Literal["relu", "tanh"]

_FEWEST, _MOST = 5, 2000


def _relu(values: FloatArray) -> FloatArray:
    return np.maximum(values, 0)


ACTIVATIONS: dict[Activation, Callable[[FloatArray], FloatArray]] = {"relu": _relu, "tanh": np.tanh}


def initial_layers(sizes: Sequence[int], rng: np.random.Generator) -> Layers:
    """Return float32 layers: weights uniform in ±√(6/(in + out)) (Glorot and Bengio, AISTATS 2010), intercepts zero."""
    layers: Layers = []
    for width_in, width_out in pairwise(sizes):
        bound = np.sqrt(6 / (width_in + width_out))
        weights = rng.uniform(-bound, bound, size=(width_in, width_out))
        layers += [weights.astype(np.float32), np.zeros(width_out, dtype=np.float32)]
    return layers


def for_raw_rows(layers: Layers, deviation: FloatArray) -> Layers:
    """Return float64 layers for rows that are centred but not scaled: the first weights take the scale in."""
    raw: Layers = [np.array(layer, dtype=np.float64, order="C") for layer in layers]
    raw[0] /= deviation[:, None]
    return raw


def run_layers(rows: FloatArray, mean: FloatArray, layers: Layers, *, activation: Activation) -> FloatArray:
    """Return what the last layer gives for each row, before any function of its own, in the precision of ``rows``."""
    kernels = [layer.astype(rows.dtype, copy=False) for layer in layers]

    def outputs(block: FloatArray) -> FloatArray:
        values = centre(block, mean) @ kernels[0] + kernels[1]
        for weights, intercepts in zip(kernels[2::2], kernels[3::2], strict=True):
            values = ACTIVATIONS[activation](values) @ weights + intercepts
        return values

    return map_rows(outputs, rows, len(kernels[-1]))


@dataclass(frozen=True)
class StandardView:
    """Features with their means and deviations; rows are scaled when they are asked for, never all at once.

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
        check_varies(**{name: rows})
        mean = column_means(rows)
        return cls(rows, mean, column_deviations(rows, mean))

    def standardized(self, chosen: IntArray) -> NDArray[np.float32]:
        """Return the chosen rows with zero mean and unit variance, in the precision that networks are trained in."""
        return np.asarray((self.rows[chosen] - self.mean) / self.deviation, dtype=np.float32)


def held_out_rows(indicator: FloatArray, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return (rows to train on, rows held out), drawn at random so that no class leaves training altogether.

    Fewer than 5 rows, which say nothing, are not held out at all, and never more than 2000, which say it slowly.

    >>> train, held_out = held_out_rows(np.eye(2)[np.arange(50) % 2], 0.2, np.random.default_rng(0))
    >>> len(train), len(held_out)
    (40, 10)
    """
    wanted = min(int(share * len(indicator)), _MOST)
    left = indicator.sum(axis=0)
    held_out: list[int] = []
    for row in rng.permutation(len(indicator)) if wanted >= _FEWEST else ():
        if len(held_out) == wanted:
            break
        if (left[indicator[row] > 0] > 1).all():
            left -= indicator[row]
            held_out.append(int(row))
    chosen = np.zeros(len(indicator), dtype=bool)
    chosen[held_out] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
