"""Correction for many comparisons."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values adjusted for how many there are: reject those below α, and a false rejection is rarer than α.

    With p₍₁₎ ≤ … ≤ p₍ₘ₎ the adjusted value of p₍ᵢ₎ is max over j ≤ i of min(1, (m − j + 1)·p₍ⱼ₎) (Holm, "A simple
    sequentially rejective multiple test procedure", Scandinavian Journal of Statistics, 1979). It holds however the
    tests depend on each other, and rejects whatever Bonferroni's correction rejects. Use it whenever a table shows more
    than one test.

    >>> from diptych.benchmark.reporting import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError("p-values must be a list of numbers from 0 to 1")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    stepped = values[order] * np.arange(len(values), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted
