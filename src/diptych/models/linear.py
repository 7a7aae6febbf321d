"""Means, affine maps and whitening of tall matrices, row block by row block."""

from __future__ import annotations

import numpy as np
import scipy

from diptych.arrays import FloatArray, map_rows, row_blocks
from diptych.errors import InvalidInputError


def check_varies(**sides: FloatArray) -> None:
    """Raise when all rows of a side are the same, which leaves nothing to correlate."""
    for name, rows in sides.items():
        # Stops at the first block that differs.
        if all(bool((rows[block] == rows[0]).all()) for block in row_blocks(len(rows))):
            raise InvalidInputError(f"all rows of {name} are the same: there is nothing to correlate")


def column_means(matrix: FloatArray) -> FloatArray:
    """Mean of each column, summed in float64 block by block."""
    total = np.zeros(matrix.shape[1])
    for rows in row_blocks(len(matrix)):
        total += matrix[rows].sum(axis=0, dtype=np.float64)
    return total / max(1, len(matrix))


def column_deviations(matrix: FloatArray, mean: FloatArray) -> FloatArray:
    """Standard deviation of each column; constant columns give 1, so that dividing by it is always safe."""
    total = np.zeros(matrix.shape[1])
    for rows in row_blocks(len(matrix)):
        total += ((matrix[rows] - mean) ** 2).sum(axis=0, dtype=np.float64)
    deviation = np.sqrt(total / len(matrix))
    noise = 8 * np.finfo(matrix.dtype).eps * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    return np.where(deviation > noise, deviation, 1.0)


def centre(matrix: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the deviations from ``mean`` in the precision of ``matrix``."""
    return np.asarray(matrix - mean.astype(matrix.dtype, copy=False))


def project(matrix: FloatArray, mean: FloatArray, projection: FloatArray) -> FloatArray:
    """Return ``(matrix − mean) @ projection`` in the precision of ``matrix``, centring one block at a time."""
    kernel = projection.astype(matrix.dtype, copy=False)
    return map_rows(lambda rows: centre(rows, mean) @ kernel, matrix, kernel.shape[1])


def relative_ridge(moment: FloatArray, share: float) -> float:
    """Return ``share`` of the mean of the diagonal, so that a ridge means the same on every scale."""
    return share * float(np.trace(moment)) / len(moment)


def rounding_level(size: int, precision: float) -> float:
    """Return the share of the largest eigenvalue below which one is noise: that of float64, or of the data."""
    return max(size * float(np.finfo(np.float64).eps), 32 * precision)


def singular_noise(size: int, precision: float, offset: float = 1.0) -> float:
    """Return the share of the largest singular value of a product of two sides below which one is noise.

    ``offset`` is how far the rows lie from the origin in units of their spread: digits that centring takes away.
    """
    return max(rounding_level(size, precision), 2 * offset * precision)


def relative_offset(mean: FloatArray, variances: FloatArray) -> float:
    """Return the largest mean of a column in units of the largest standard deviation, and at least 1."""
    spread = float(np.sqrt(variances.max(initial=0.0)))
    return max(1.0, float(np.abs(mean).max(initial=0.0)) / spread) if spread > 0 else 1.0


def whitener(moment: FloatArray, ridge: float, precision: float = 0.0) -> FloatArray:
    """Return R with Rᵀ (moment + ridge·I) R = I on the directions that carry variance.

    A Cholesky factor serves when the matrix is well conditioned. Otherwise eigenvalues at rounding level, that of
    float64 or of the data (``precision``), are dropped, so that constant columns and n < d give fewer columns, never
    infinity.
    """
    regular = moment + ridge * np.eye(len(moment))
    noise = rounding_level(len(moment), precision)
    try:
        factor = scipy.linalg.cholesky(regular, lower=True)
    except scipy.linalg.LinAlgError:
        return _eigen_whitener(regular, noise)
    pivots = np.diag(factor)
    if pivots.min() < max(1e-6, np.sqrt(noise)) * pivots.max():
        return _eigen_whitener(regular, noise)
    return np.asarray(scipy.linalg.lapack.dtrtri(factor, lower=1)[0].T)


def _eigen_whitener(regular: FloatArray, noise: float) -> FloatArray:
    values, vectors = scipy.linalg.eigh(regular)
    kept = values > max(values[-1], 0.0) * noise
    return fix_signs(vectors[:, kept] / np.sqrt(values[kept]), vectors[:, kept])[0]


def fix_signs(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Flip pairs of columns together so that the largest entry of each left column is positive."""
    largest = np.abs(left).argmax(axis=0)
    signs = np.where(left[largest, np.arange(left.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(left * signs), np.asarray(right * signs)


def through_unit(raw: FloatArray, unit: FloatArray, slopes: FloatArray) -> FloatArray:
    """Carry a gradient from rows of unit length back to the rows before scaling."""
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    across = slopes - unit * np.einsum("ij,ij->i", unit, slopes)[:, None]
    return np.asarray(across / np.where(lengths > 0, lengths, 1))
