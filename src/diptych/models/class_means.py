"""Class statistics of tall matrices, without anything of size n × n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.models.linear import centre

_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class ClassMeans:
    """Means and sizes of classes; a row with several labels counts for each by its share."""

    means: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, mean: FloatArray, shares: FloatArray) -> ClassMeans:
        """Return the statistics of the deviations of ``rows`` from ``mean``; empty classes are left out."""
        sizes = shares.sum(axis=0)
        sums = weighted_sums(rows, mean, shares)
        present = sizes > 0
        return cls(sums[present] / sizes[present, None], sizes[present])

    def between(self) -> FloatArray:
        """Return the scatter between classes, Σ_c n_c m_c m_cᵀ."""
        return (self.means * self.sizes[:, None]).T @ self.means


def weighted_sums(rows: FloatArray, mean: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``weightsᵀ (rows − mean)`` in float64, block by block."""
    total = np.zeros((weights.shape[1], rows.shape[1]))
    for block in row_blocks(len(rows), _BLOCK_ROWS):
        total += weights[block].T @ centre(rows[block], mean)
    return total


def weighted_moment(rows: FloatArray, mean: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``Σ_i weights_i (x_i − mean)(x_i − mean)ᵀ`` in float64, block by block."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for block in row_blocks(len(rows), _BLOCK_ROWS):
        deviations = centre(rows[block], mean)
        total += (deviations * weights[block, None].astype(deviations.dtype)).T @ deviations
    return total
