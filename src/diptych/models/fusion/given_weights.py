"""Weights as people give them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError


def given_weights(weights: str | Sequence[float] | FloatArray, n_parts: int) -> FloatArray:
    """Return one number for each part, not all zero; ``average`` stands for equal ones that sum to 1.

    >>> from diptych.models.fusion.given_weights import given_weights
    >>> given_weights("average", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(weights, str):
        if weights != "average":
            raise InvalidInputError(f"weights must be 'average' or one number for each part, got {weights!r}")
        return np.full(n_parts, 1 / n_parts)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_parts,):
        raise InvalidInputError(f"give one weight for each part, got {values.size} for {n_parts}")
    if not np.isfinite(values).all() or not values.any():
        raise InvalidInputError("weights must be finite numbers, at least one of them other than 0")
    return values
