"""Losses of scores and their derivatives, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from diptych.arrays import FloatArray, IntArray

PairLoss = Literal["logistic", "squared"]
RowLoss = Callable[[FloatArray, slice], tuple[float, FloatArray]]
"""Takes scores of the pairs of some left items and which items these are; gives the summed loss and ∂loss/∂scores."""

RowSigns = Callable[[slice], FloatArray]
"""Gives z of the pairs of some left items: +1 where a pair matches, −1 where not; may broadcast over the items."""


def softplus_and_slope(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(1 + eᵛ) and its derivative 1/(1 + e⁻ᵛ) from one exponential that cannot overflow."""
    decay = np.exp(-np.abs(values))
    slope = np.where(values > 0, 1, decay) / (1 + decay)
    return np.asarray(np.log1p(decay) + np.maximum(values, 0)), np.asarray(slope)


def classification_loss(kind: PairLoss, signs: RowSigns, weights: FloatArray | float = 1.0) -> RowLoss:
    """Return Σ w ℓ(z, s) with ℓ = log(1 + e^(−zs)) or (s − z)²; ``weights`` broadcast over the pairs of an item."""

    def logistic(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        wanted = signs(rows)
        losses, slope = softplus_and_slope(-wanted * scores)
        return float((weights * losses).sum(dtype=np.float64)), np.asarray(-weights * wanted * slope)

    def squared(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        difference = scores - signs(rows)
        return float((weights * difference**2).sum(dtype=np.float64)), np.asarray(2 * weights * difference)

    return logistic if kind == "logistic" else squared


def ranking_loss(own: Callable[[slice], IntArray]) -> RowLoss:
    """Return Σ log(1 + e^(−(s_own − s))) over the others; ``own`` names the column of each item's partner."""

    def ranking(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        items, partner = np.arange(len(scores)), own(rows)
        losses, slope = softplus_and_slope(scores - scores[items, partner][:, None])
        losses[items, partner], slope[items, partner] = 0, 0
        slope[items, partner] = -slope.sum(axis=1)
        return float(losses.sum(dtype=np.float64)), slope

    return ranking


def distance_loss(signs: RowSigns, sharpness: float) -> RowLoss:
    """Return Σ ℓ_β(z (D² − 1)) with ℓ_β(u) = log(1 + e^(βu))/β, where the scores are squared distances D²."""

    def generalised_logistic(distances: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        wanted = signs(rows)
        losses, slope = softplus_and_slope(sharpness * wanted * (distances - 1))
        return float(losses.sum(dtype=np.float64)) / sharpness, np.asarray(wanted * slope)

    return generalised_logistic


def first_matches(n_columns: int) -> RowSigns:
    """Return the signs of sampled pairs: the first partner matches, the others do not."""
    signs = np.full((1, n_columns), -1.0)
    signs[0, 0] = 1
    return lambda rows: signs


def own_matches(n_rows: int) -> RowSigns:
    """Return the signs of all pairs of aligned rows: item i matches partner i alone."""

    def signs(rows: slice) -> FloatArray:
        block = np.full((rows.stop - rows.start, n_rows), -1.0)
        block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = 1
        return block

    return signs
