"""Logistic regression with soft and multiple targets, as one convex problem for L-BFGS."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

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

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights, intercepts = _unflatten(flat, n_features, n_classes)
        kernel, bias = weights.astype(rows.dtype, copy=False), intercepts - mean @ weights
        value = float((weights**2).sum()) / (2 * C)
        gradient, bias_gradient = weights / C, np.zeros(n_classes)
        for block in row_blocks(n_rows, _BLOCK_ROWS):
            loss_value, residual = _LOSSES[loss](rows[block] @ kernel + bias, targets[block])
            value += loss_value
            gradient += rows[block].T @ residual.astype(rows.dtype, copy=False)
            bias_gradient += residual.sum(axis=0)
        # The features are centred by algebra, not by a copy: (X − 1mᵀ)ᵀR = XᵀR − m(1ᵀR).
        gradient -= np.outer(mean, bias_gradient)
        return value / n_rows, np.concatenate([gradient.ravel(), bias_gradient]) / n_rows

    start = np.zeros((n_features + 1) * n_classes)
    options = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxcor": 20}
    solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    weights, intercepts = _unflatten(solution, n_features, n_classes)
    return weights, intercepts - mean @ weights


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
