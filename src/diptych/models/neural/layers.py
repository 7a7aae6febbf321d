"""Dense layers as NumPy arrays: how they start, and how they encode once trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.models.linear import centre
from diptych.models.parameters import check_count

Layers = list[FloatArray]
"""Weights and intercepts in turn, from the input to the output."""

Activation = Literal["relu", "tanh"]

_BLOCK_ROWS = 4096


def _relu(values: FloatArray) -> FloatArray:
    return np.maximum(values, 0)


ACTIVATIONS: dict[Activation, Callable[[FloatArray], FloatArray]] = {"relu": _relu, "tanh": np.tanh}


def check_sizes(name: str, sizes: object) -> tuple[int, ...]:
    """Return ``sizes`` as a tuple of layer widths, or raise."""
    if not isinstance(sizes, tuple | list):
        raise InvalidInputError(f"{name} must be a tuple of layer sizes such as (512, 256), got {sizes!r}")
    return tuple(check_count(f"each size in {name}", size) for size in sizes)


def initial_layers(sizes: Sequence[int], rng: np.random.Generator) -> Layers:
    """Return float32 layers of the given widths: weights uniform in ±√(6/(in + out)), intercepts zero.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
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


def run_layers(rows: FloatArray, mean: FloatArray, layers: Layers, activation: Activation) -> FloatArray:
    """Return what the last layer gives for each row, before any function of its own, in the precision of ``rows``."""
    kernels = [layer.astype(rows.dtype, copy=False) for layer in layers]
    outputs = np.empty((len(rows), len(kernels[-1])), dtype=rows.dtype)
    for block in row_blocks(len(rows), _BLOCK_ROWS):
        values = centre(rows[block], mean) @ kernels[0] + kernels[1]
        for weights, intercepts in zip(kernels[2::2], kernels[3::2], strict=True):
            values = ACTIVATIONS[activation](values) @ weights + intercepts
        outputs[block] = values
    return outputs
