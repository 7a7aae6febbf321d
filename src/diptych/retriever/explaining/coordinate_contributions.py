"""Scores as sums over coordinates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.retriever.explaining.linear_parts import is_linear, linear_parts
from diptych.space import Direction, Space

_FLOOR = 1e-12


def coordinate_contributions(space: Space, query: AnyArray, answer: AnyArray, direction: Direction) -> FloatArray:
    """Return what each coordinate adds to the score of two points, given as one row each.

    Every space but ``hamming`` is a sum over coordinates: a product for inner products (after centring and scaling), a
    squared or absolute difference for distances, a log-ratio for divergences. The contributions sum to the score.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.retriever.explaining.coordinate_contributions import coordinate_contributions
    >>> query, answer = np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])
    >>> coordinate_contributions(Space("dot"), query, answer, "text_query").tolist()
    [0.375, 0.125]
    >>> coordinate_contributions(Space("l1"), query, answer, "text_query").tolist()
    [-0.25, -0.25]
    """
    if is_linear(space):
        return np.asarray(linear_parts(space, direction, query)[0] * linear_parts(space, direction, answer)[0])
    if space.name not in _DIFFERENCES or space.split is not None:
        raise InvalidInputError(f"the score of the space {space.name!r} is no sum over coordinates with a meaning")
    first, second = np.asarray(query[0], dtype=np.float64), np.asarray(answer[0], dtype=np.float64)
    if space.name == "kl" and direction == "text_query":
        first, second = second, first
    return _DIFFERENCES[space.name](first, second)


def _kl(first: FloatArray, second: FloatArray) -> FloatArray:
    floored = np.maximum(second, _FLOOR)
    logarithms = np.log(floored / floored.sum())
    return np.asarray(first * (logarithms - np.log(np.where(first > 0, first, 1.0))))


def _noisy_or(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(-np.log1p(-np.minimum(first * second, 1 - _FLOOR)))


_DIFFERENCES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "euclidean": lambda first, second: np.asarray(-((first - second) ** 2)),
    "l1": lambda first, second: np.asarray(-np.abs(first - second)),
    "kl": _kl,
    "kl_query": _kl,
    "noisy_or": _noisy_or,
}
