"""Losses of a batch of pairs with their gradients: softmax, sigmoid, and neighbourhoods that should stay."""

from __future__ import annotations

from typing import Literal

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.models.linear import through_unit

Divergence = Literal["js", "reverse"]
_LEAST = 1e-12


def softmax_slopes(cosines: FloatArray, temperature: float) -> tuple[float, FloatArray]:
    """Return the symmetric softmax loss of pairs on the diagonal, and its gradient with respect to the cosines."""
    logits = cosines / temperature
    by_row, row_loss = _softmax_loss(logits)
    by_column, column_loss = _softmax_loss(logits.T)
    return (row_loss + column_loss) / 2, (by_row + by_column.T) / (2 * len(cosines) * temperature)


def _softmax_loss(logits: FloatArray) -> tuple[FloatArray, float]:
    """Return softmax − identity, row by row, and the mean of −log of its diagonal."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    loss = float(np.mean(np.log(sums[:, 0]) - np.diagonal(shifted)))
    shares = exponentials / sums
    shares[np.diag_indices_from(shares)] -= 1
    return shares, loss


def sigmoid_loss(cosines: FloatArray, logit: FloatArray) -> float:
    """Return the pairwise sigmoid loss, −(1/n) Σ log σ(±(t cos + b)); ``logit`` holds log t and b.

    Zhai et al., "Sigmoid loss for language image pre-training", ICCV 2023.
    """
    return float(np.logaddexp(0, -_margins(cosines, logit)[1]).sum() / len(cosines))


def sigmoid_slopes(cosines: FloatArray, logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradients of `sigmoid_loss` with respect to the cosines and to ``logit``."""
    signs, margins = _margins(cosines, logit)
    slopes = -signs / (1 + np.exp(np.clip(margins, -60, 60))) / len(cosines)
    scale = float(np.exp(logit[0]))
    return scale * slopes, np.array([scale * float((slopes * cosines).sum()), float(slopes.sum())])


def sigmoid_start(scale: float, n_rows: int) -> FloatArray:
    """Return the ``logit`` under which a batch of unrelated points is expected to hold one pair for each row."""
    return np.array([np.log(scale), -np.log(max(1, n_rows - 1))])


def _margins(cosines: FloatArray, logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    signs = 2 * np.eye(len(cosines), dtype=cosines.dtype) - 1
    return signs, signs * (np.exp(logit[0]) * cosines + logit[1])


def structure_slopes(
    features: FloatArray, points: FloatArray, temperature: float, levels: int, divergence: Divergence = "js"
) -> tuple[float, FloatArray]:
    """Return how much the neighbourhoods of points differ from those of the features, and the gradient for the points.

        R = (1/L) Σ_l (1/l) (1/n) Σ_i D(P^l_i, Q^l_i)

    P and Q are softmaxes over the rows of V Vᵀ/τ, for V the unit rows of features and of points less their mean, and
    P^l what l steps between neighbours reach. D is the Jensen-Shannon divergence, or what the public code of STRUCTURE
    computes: ½KL(M‖P) + ½KL(M‖Q), which has no upper bound.
    """
    _, target = _neighbours(features.astype(np.float64), temperature)
    raw = points.astype(np.float64)
    centred, shares = _neighbours(raw, temperature)
    value, slopes = 0.0, np.zeros_like(shares)
    reached, wanted = np.eye(len(shares)), np.eye(len(shares))
    powers = [reached]
    for level in range(1, levels + 1):
        reached, wanted = reached @ shares, wanted @ target
        powers.append(reached)
        found, outer = _divergence(wanted, reached, divergence)
        weight = 1 / (levels * level)
        value += weight * found
        slopes += weight * sum(powers[a].T @ outer @ powers[level - 1 - a].T for a in range(level))
    across = shares * (slopes - (slopes * shares).sum(axis=1, keepdims=True))
    turned = (across + across.T) @ centred / temperature
    turned -= turned.mean(axis=0)
    return value, through_unit(raw, unit_rows(raw), turned)


def _neighbours(rows: FloatArray, temperature: float) -> tuple[FloatArray, FloatArray]:
    unit = unit_rows(rows)
    centred = unit - unit.mean(axis=0)
    logits = centred @ centred.T / temperature
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return centred, shares / shares.sum(axis=1, keepdims=True)


def _divergence(p: FloatArray, q: FloatArray, kind: Divergence) -> tuple[float, FloatArray]:
    """Return the mean divergence of the rows of two stochastic matrices, and its gradient with respect to ``q``."""
    p, q = np.maximum(p, _LEAST), np.maximum(q, _LEAST)
    middle = (p + q) / 2
    if kind == "js":
        terms = 0.5 * (p * np.log(p / middle) + q * np.log(q / middle))
        return float(terms.sum() / len(p)), 0.5 * np.log(q / middle) / len(p)
    terms = 0.5 * middle * np.log(middle**2 / (p * q))
    return float(terms.sum() / len(p)), (0.25 * np.log(middle**2 / (p * q)) + 0.5 - middle / (2 * q)) / len(p)
