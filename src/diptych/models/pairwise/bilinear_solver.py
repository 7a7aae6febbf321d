"""The matrix W of a bilinear score s(a, b) = aᵀWb + c, fitted to pairs without ever forming their features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.models.pairwise.lbfgs import minimise
from diptych.models.pairwise.losses import RowLoss
from diptych.models.pairwise.pair_term import PairTerm
from diptych.models.pairwise.principal_axes import PrincipalAxes


def fit_bilinear(
    images: FloatArray,
    texts: FloatArray,
    terms: Sequence[PairTerm],
    *,
    ridge: float,
    curvature: float,
    intercept: float | None,
    mask: BoolArray | None,
    max_iter: int,
    tol: float,
) -> tuple[FloatArray, float]:
    """Return (W, c) that minimise  Σ ℓ(aᵢᵀW bⱼ + c) + ridge/2 ‖W‖²  over the pairs of all ``terms``.

    With P = AW the scores of a block are P Bᵀ, and with their derivatives R the gradient is Aᵀ(RB): the features
    a ⊗ b are never formed. ``intercept`` is where c starts, None keeps it 0; entries of W outside ``mask`` stay 0.

    The Hessian is close to h·Σ_a ⊗ Σ_b + ridge, where h is the ``curvature`` of ℓ. In the principal axes of both
    sides this is diagonal, so dividing by its root leaves L-BFGS a problem that is nearly round.
    """
    axes = PrincipalAxes.of if mask is None else PrincipalAxes.unrotated
    image_axes, text_axes = axes(images), axes(texts)
    shape = len(image_axes.energies), len(text_axes.energies)
    count = sum(term.pairs.count for term in terms)
    scale = 1 / np.sqrt(curvature * np.outer(image_axes.energies, text_axes.energies) + ridge / count)
    if mask is not None:
        scale = np.where(mask, scale, 0.0)
    bias_scale = 0.0 if intercept is None else 1 / np.sqrt(curvature)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights, bias = scale * flat[:-1].reshape(shape), offset + bias_scale * float(flat[-1])
        value, gradient, bias_gradient = evaluate_terms(image_axes.rows, text_axes.rows, weights, bias, terms)
        value += ridge / 2 * float((weights**2).sum())
        gradient = scale * (gradient + ridge * weights)
        return value / count, np.append(gradient.ravel(), bias_scale * bias_gradient) / count

    offset = intercept or 0.0
    origin = np.zeros(shape[0] * shape[1] + 1)
    slope = objective(origin)[1]
    # Where the ridge outweighs the data this one step is the solution, which L-BFGS could not tell from zero.
    solution = minimise(objective, -slope, slope=slope, tol=tol, max_iter=max_iter, hint="lower C")
    weights = scale * solution[:-1].reshape(shape)
    return image_axes.basis @ weights @ text_axes.basis.T, offset + bias_scale * float(solution[-1])


def evaluate_terms(
    images: FloatArray, texts: FloatArray, weights: FloatArray, bias: float, terms: Sequence[PairTerm]
) -> tuple[float, FloatArray, float]:
    """Return the summed loss of all pairs under aᵀWb + c, and its gradients in W and c."""
    kernel = weights.astype(images.dtype, copy=False)
    # Scores need one product of the narrower side only: (AW)Bᵀ or A(BWᵀ)ᵀ.
    narrow_texts = texts.shape[1] <= images.shape[1]
    image_points, text_points = (images @ kernel, texts) if narrow_texts else (images, texts @ kernel.T)
    value, bias_gradient = 0.0, 0.0
    gradient = np.zeros(weights.shape)
    for term in terms:
        totals: list[float] = []
        sides = (text_points, image_points) if term.swapped else (image_points, text_points)
        sums = term.pairs.reduce(*sides, _shifted(term.loss, bias, totals))
        by_image, by_text = (sums.by_right, sums.by_left) if term.swapped else (sums.by_left, sums.by_right)
        # Casting the narrow sums keeps a float32 side from being copied to float64.
        gradient += (
            images.T @ by_image.astype(images.dtype, copy=False)
            if narrow_texts
            else by_text.T.astype(texts.dtype, copy=False) @ texts
        )
        value += sums.value
        bias_gradient += sum(totals)
    return value, gradient, bias_gradient


def _shifted(loss: RowLoss, bias: float, totals: list[float]) -> RowLoss:
    """Return ``loss`` of scores plus ``bias``, which notes the sum of the derivatives in ``totals``."""

    def shifted(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        value, residual = loss(scores + bias, rows)
        totals.append(float(residual.sum(dtype=np.float64)))
        return value, residual

    return shifted
