"""Least squares over all pairs, in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.pairwise.principal_axes import PrincipalAxes

SignMoment = Callable[[FloatArray, FloatArray], FloatArray]
"""Gives AᵀZB of two sides, where Z holds the sign of every pair."""


def fit_least_squares(
    images: FloatArray, texts: FloatArray, moment: SignMoment, *, ridge: float, mean_sign: float | None
) -> tuple[FloatArray, float]:
    """Return (W, c) that minimise  Σᵢⱼ (aᵢᵀW bⱼ + c − zᵢⱼ)² + ridge/2 ‖W‖²  over all n² pairs.

    In the principal axes of both sides the normal equations (AᵀA) W (BᵀB) + ridge/2 W = AᵀZB are one division an
    entry. ``mean_sign`` is the mean of Z when c is fitted, None when c is 0; c then takes a rank-one correction.
    """
    image_axes, text_axes = PrincipalAxes.of(images), PrincipalAxes.of(texts)
    count = len(images) * len(texts)
    divisor = count * np.outer(image_axes.energies, text_axes.energies) + ridge / 2
    signed = moment(image_axes.rows, text_axes.rows)
    if mean_sign is None:
        return image_axes.basis @ (signed / divisor) @ text_axes.basis.T, 0.0
    # Profiling c out centres the pair features a ⊗ b, whose mean is the product of the means.
    mean = np.outer(image_axes.rows.mean(axis=0, dtype=np.float64), text_axes.rows.mean(axis=0, dtype=np.float64))
    solved = (signed - count * mean_sign * mean) / divisor
    mean_solved = mean / divisor
    correction = count * float((mean * solved).sum()) / (1 - count * float((mean * mean_solved).sum()))
    weights = solved + correction * mean_solved
    return image_axes.basis @ weights @ text_axes.basis.T, mean_sign - float((mean * weights).sum())
