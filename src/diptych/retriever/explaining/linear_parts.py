"""Scores that are inner products, taken apart."""

from __future__ import annotations

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.space import Direction, Space

_CENTRED = ("pearson", "covariance")
_UNIT = ("cosine", "pearson")
_LINEAR = ("cosine", "pearson", "covariance", "dot")


def is_linear(space: Space) -> bool:
    """Say whether scores of a space are inner products of points that were centred or scaled first."""
    return space.name in _LINEAR


def linear_parts(space: Space, direction: Direction, parts: AnyArray) -> FloatArray:
    """Return the parts of a point as they enter the inner product of a linear space.

    A point is the sum of its parts, given as rows. Centring is linear and the length that a cosine divides by is one
    number, so the score of two points is the sum of the inner products of all pairs of their returned parts.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.retriever.explaining.linear_parts import linear_parts
    >>> query = linear_parts(Space("cosine"), "text_query", np.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> answer = linear_parts(Space("cosine"), "text_query", np.array([[2.0, 0.0]]))
    >>> (query @ answer.T).round(6).tolist()
    [[0.6], [0.0]]
    """
    chosen: FloatArray = np.asarray(parts, dtype=np.float64)
    if space.split is not None:
        chosen = chosen[:, : space.split] if direction == "image_query" else chosen[:, space.split :]
    if space.name in _CENTRED:
        chosen = _centred(chosen)
    if space.name in _UNIT:
        length = float(np.linalg.norm(chosen.sum(axis=0)))
        return chosen / length if length > 0 else np.zeros_like(chosen)
    return chosen / np.sqrt(chosen.shape[1]) if space.name == "covariance" else chosen


def _centred(parts: FloatArray) -> FloatArray:
    whole = parts.sum(axis=0)
    centred = parts - parts.mean(axis=1, keepdims=True)
    # A constant point has no shape to correlate with; what rounding leaves of it must not be scaled up.
    noise = 4 * np.finfo(np.float32).eps * np.abs(whole).max(initial=0.0)
    is_constant = np.abs(centred.sum(axis=0)).max(initial=0.0) <= noise
    return np.zeros_like(parts) if is_constant else centred
