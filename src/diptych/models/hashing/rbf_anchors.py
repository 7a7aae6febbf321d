"""Radial basis functions around training rows: features in which a linear method bends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.models.linear import centre, column_means

_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class RbfAnchors:
    """The map x ↦ exp(−‖x − a‖² / 2s) over the anchors a, where s is the mean squared distance of training rows.

    ``mean`` and ``scale`` bring rows to zero mean and unit mean squared distance, the units that ``anchors`` are in, so
    that features of any size leave the same room for rounding.
    """

    mean: FloatArray
    scale: float
    anchors: FloatArray

    @classmethod
    def drawn(cls, rows: FloatArray, n_anchors: int, seed: int) -> RbfAnchors:
        """Take ``n_anchors`` different training rows, or all where there are fewer."""
        mean = column_means(rows)
        chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_anchors])
        # Over all pairs, mean ‖x − x′‖² is twice the total variance: no distances are needed for it.
        scale = float(np.sqrt(2 * _total_variance(rows, mean)))
        return cls(mean, scale, centre(rows[chosen], mean).astype(np.float64) / scale)

    def features(self, rows: FloatArray) -> FloatArray:
        """Return the (rows, anchors) matrix of features in the precision of ``rows``."""
        features = np.empty((len(rows), len(self.anchors)), dtype=rows.dtype)
        for block in row_blocks(len(rows), _BLOCK_ROWS):
            features[block] = self._block(rows[block])
        return features

    def project(self, rows: FloatArray, projection: FloatArray, offset: FloatArray) -> FloatArray:
        """Return features @ ``projection`` − ``offset`` without holding the features of more than a block of rows."""
        kernel, shift = projection.astype(rows.dtype, copy=False), offset.astype(rows.dtype, copy=False)
        points = np.empty((len(rows), projection.shape[1]), dtype=rows.dtype)
        for block in row_blocks(len(rows), _BLOCK_ROWS):
            points[block] = self._block(rows[block]) @ kernel - shift
        return points

    def _block(self, rows: FloatArray) -> FloatArray:
        scaled = centre(rows, self.mean) / rows.dtype.type(self.scale)
        anchors = self.anchors.astype(rows.dtype, copy=False)
        squares = np.einsum("ij,ij->i", scaled, scaled)[:, None] + np.einsum("ij,ij->i", anchors, anchors)
        squares -= 2 * (scaled @ anchors.T)
        np.maximum(squares, 0, out=squares)
        squares *= -0.5
        return np.asarray(np.exp(squares, out=squares))


def _total_variance(rows: FloatArray, mean: FloatArray) -> float:
    total = 0.0
    for block in row_blocks(len(rows), _BLOCK_ROWS):
        deviations = centre(rows[block], mean)
        # The sum of a block in its own precision, the sum of blocks in float64.
        total += float(np.einsum("ij,ij->", deviations, deviations))
    return total / len(rows)
