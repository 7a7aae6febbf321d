"""Values of two methods on the same queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError


def known_values(values: ArrayLike, *, name: str) -> FloatArray:
    """Return ``values`` as float64 without the skipped queries (NaN)."""
    numbers = _as_values(values, name=name)
    return _not_empty(numbers[~np.isnan(numbers)])


def paired(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both lists of values as float64, without the queries that either method skipped (NaN)."""
    first, second = _as_values(a, name="a"), _as_values(b, name="b")
    if len(first) != len(second):
        raise InvalidInputError(
            f"a has {len(first)} values and b {len(second)}; a paired comparison needs the same queries in both"
        )
    known = ~(np.isnan(first) | np.isnan(second))
    return _not_empty(first[known]), _not_empty(second[known])


def _as_values(values: ArrayLike, *, name: str) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise InvalidInputError(f"{name} must be a list with one value per query, got {numbers.ndim} dimensions")
    if np.isinf(numbers).any():
        raise InvalidInputError(f"{name} holds infinity; values must be finite, or NaN for skipped queries")
    return numbers


def _not_empty(values: FloatArray) -> FloatArray:
    if not len(values):
        raise InvalidInputError("no query has a value; there is nothing to compare")
    return values
