"""Logistic regression with soft and multiple targets, as one convex problem for L-BFGS."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning

from diptych.arrays import FloatArray, row_blocks

Loss = Literal["softmax", "ovr"]

_BLOCK_ROWS = 4096


def fit_logistic(
    rows: FloatArray, targets: FloatArray, *, C: float, loss: Loss, max_iter: int, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Return (weights, intercepts) that minimise  Σᵢ ℓ(yᵢ, xᵢW + b) + ‖W‖²/(2C).

    ``softmax``: ℓ is the cross-entropy of the target distribution. ``ovr``: ℓ sums one binary cross-entropy per class.
    Features are centred internally, which changes nothing but the conditioning, because intercepts are not penalised.
    """
    n_rows, n_features, n_classes = len(rows), rows.shape[1], targets.shape[1]
    mean = rows.mean(axis=0, dtype=np.float64)
    # One unit for all features makes the stopping rule independent of their scale: X W = (X/s)(sW), ‖W‖² = ‖sW‖²/s².
    unit = _spread(rows, mean)
    penalty = 1 / (C * unit**2)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        scaled, intercepts = _unflatten(flat, n_features, n_classes)
        weights = scaled / unit
        kernel, bias = weights.astype(rows.dtype, copy=False), intercepts - mean @ weights
        value = penalty * float((scaled**2).sum()) / 2
        gradient, bias_gradient = np.zeros_like(scaled), np.zeros(n_classes)
        for block in row_blocks(n_rows, _BLOCK_ROWS):
            loss_value, residual = _LOSSES[loss](rows[block] @ kernel + bias, targets[block])
            value += loss_value
            gradient += rows[block].T @ residual.astype(rows.dtype, copy=False)
            bias_gradient += residual.sum(axis=0)
        # The features are centred by algebra, not by a copy: (X − 1mᵀ)ᵀR = XᵀR − m(1ᵀR).
        gradient = (gradient - np.outer(mean, bias_gradient)) / unit + penalty * scaled
        return value / n_rows, np.concatenate([gradient.ravel(), bias_gradient]) / n_rows

    start = np.zeros((n_features + 1) * n_classes)
    options = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxcor": 20}
    solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if solution.nit >= max_iter:
        warnings.warn(
            f"logistic regression stopped after {max_iter} iterations before it converged; raise max_iter, "
            "lower C or scale the features",
            ConvergenceWarning,
            stacklevel=2,
        )
    scaled, intercepts = _unflatten(solution.x, n_features, n_classes)
    weights = scaled / unit
    return weights, intercepts - mean @ weights


def _spread(rows: FloatArray, mean: FloatArray) -> float:
    """Return the root mean square of the centred features, 1 when they are constant."""
    total = sum(float(((rows[block] - mean) ** 2).sum()) for block in row_blocks(len(rows), _BLOCK_ROWS))
    return float(np.sqrt(total / rows.size)) or 1.0


def predict_logistic(rows: FloatArray, weights: FloatArray, intercepts: FloatArray, *, loss: Loss) -> FloatArray:
    """Return class probabilities: they sum to one for ``softmax``, each stands alone for ``ovr``."""
    kernel, bias = weights.astype(rows.dtype, copy=False), intercepts.astype(rows.dtype, copy=False)
    probabilities = np.empty((len(rows), weights.shape[1]), dtype=rows.dtype)
    for block in row_blocks(len(rows), _BLOCK_ROWS):
        scores = rows[block] @ kernel + bias
        probabilities[block] = softmax(scores, axis=1) if loss == "softmax" else expit(scores)
    return probabilities


def _unflatten(flat: FloatArray, n_features: int, n_classes: int) -> tuple[FloatArray, FloatArray]:
    return flat[: n_features * n_classes].reshape(n_features, n_classes), flat[n_features * n_classes :]


def _softmax_loss(scores: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    partition = shares.sum(axis=1, keepdims=True)
    return float(np.log(partition).sum() - (targets * scores).sum()), shares / partition - targets


def _ovr_loss(scores: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    return float((np.logaddexp(0, scores) - targets * scores).sum()), expit(scores) - targets


_LOSSES = {"softmax": _softmax_loss, "ovr": _ovr_loss}
