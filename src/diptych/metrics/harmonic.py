"""Sums of reciprocals, accurate in the relative sense."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.special import digamma

from diptych.arrays import FloatArray, IntArray

_ASYMPTOTIC_FROM = 64


def reciprocal_sum(before: IntArray, count: IntArray) -> FloatArray:
    """Return Σ_{j=1..count} 1 / (before + j) = H(before + count) − H(before).

    Subtracting two harmonic numbers loses digits when the gallery is large and the group small, which then show in
    average precision; here the leading term is a ``log1p`` and nothing cancels.

    >>> import numpy as np
    >>> from diptych.metrics.harmonic import reciprocal_sum
    >>> reciprocal_sum(np.array([0, 1]), np.array([1, 2])).round(6).tolist()
    [1.0, 0.833333]
    """
    total = count / (before + 1.0)
    several = count > 1
    if several.any():
        total[several] = _several(before[several].astype(np.float64), count[several].astype(np.float64))
    return cast(FloatArray, total)


def _several(before: FloatArray, count: FloatArray) -> FloatArray:
    end = before + count
    large = np.maximum(before, _ASYMPTOTIC_FROM)
    asymptotic = np.log1p(count / large) + _correction(large + count) - _correction(large)
    return cast(FloatArray, np.where(before < _ASYMPTOTIC_FROM, digamma(end + 1) - digamma(before + 1), asymptotic))


def _correction(m: FloatArray) -> FloatArray:
    """Return H(m) − ln m − γ by its asymptotic series; the next term is below 2⁻⁵³/60 from m = 64 on."""
    square = m * m
    return cast(FloatArray, 1 / (2 * m) - (1 / 12 - (1 / 120 - 1 / (252 * square)) / square) / square)
