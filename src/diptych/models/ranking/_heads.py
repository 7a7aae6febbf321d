"""Heads of a contrastive model: a linear map, with a network added to it that starts at zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from diptych.arrays import FloatArray

HeadKind = Literal["linear", "mlp", "gated"]
Backward = Callable[[FloatArray], list[FloatArray]]
_NORM_EPSILON = 1e-5
_GATE_LIMIT = 6.0


def new_head(kind: HeadKind, projection: FloatArray, hidden_size: int, rng: np.random.Generator) -> list[FloatArray]:
    """Return the arrays of a head that starts as a linear map: the last layer of its network is zero."""
    width, points = projection.shape
    layers = {"linear": 0, "mlp": 1, "gated": 2}[kind]
    arrays = [projection]
    for _ in range(layers):
        limit = np.sqrt(6 / (width + hidden_size))
        arrays.append(rng.uniform(-limit, limit, (width, hidden_size)).astype(np.float32))
        arrays.append(np.zeros(hidden_size, dtype=np.float32))
    return arrays if kind == "linear" else [*arrays, np.zeros((hidden_size, points), dtype=np.float32)]


def apply_head(arrays: Sequence[FloatArray], rows: FloatArray) -> FloatArray:
    """Return the points of rows.

    One array is a linear map P. Four are P, W, c, V of x P + relu(x W + c) V. Six are P, F, b, G, c, V of SAIL's layer
    beside P: x P + (relu6(n F + b) ∘ (n G + c)) V with n the row scaled to mean 0 and variance 1.
    """
    return run_head(arrays, rows)[0]


def run_head(arrays: Sequence[FloatArray], rows: FloatArray) -> tuple[FloatArray, Backward]:
    """Return the points of rows, and the function from gradients for the points to those for the arrays."""
    projection = arrays[0]
    if len(arrays) == 1:
        return rows @ projection, lambda slopes: [rows.T @ slopes]
    last = arrays[-1]
    if len(arrays) == 4:
        kernel, bias = arrays[1:3]
        hidden = np.maximum(rows @ kernel + bias, 0)

        def back(slopes: FloatArray) -> list[FloatArray]:
            inner = (slopes @ last.T) * (hidden > 0)
            return [rows.T @ slopes, rows.T @ inner, inner.sum(axis=0), hidden.T @ slopes]

        return rows @ projection + hidden @ last, back
    gate_kernel, gate_bias, kernel, bias = arrays[1:5]
    normed = rows - rows.mean(axis=1, keepdims=True)
    normed = normed / np.sqrt((normed**2).mean(axis=1, keepdims=True) + _NORM_EPSILON)
    raw, value = normed @ gate_kernel + gate_bias, normed @ kernel + bias
    gate = np.clip(raw, 0, _GATE_LIMIT)
    product = gate * value

    def back_gated(slopes: FloatArray) -> list[FloatArray]:
        inner = slopes @ last.T
        of_gate = inner * value * ((raw > 0) & (raw < _GATE_LIMIT))
        of_value = inner * gate
        return [
            rows.T @ slopes,
            normed.T @ of_gate,
            of_gate.sum(axis=0),
            normed.T @ of_value,
            of_value.sum(axis=0),
            product.T @ slopes,
        ]

    return rows @ projection + product @ last, back_gated
