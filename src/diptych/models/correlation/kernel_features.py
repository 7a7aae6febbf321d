"""Explicit features whose inner products are, or approximate, a kernel.

All three routes end in the same affine form, g(x) = k(x, landmarks) @ weights − offset with K ≈ G Gᵀ, which is why one
linear method behind them serves the exact and the approximate case alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular

from diptych.arrays import FloatArray, row_blocks
from diptych.models.correlation.kernels import Kernel

_EIGENVALUE_FLOOR = 1e-10
_BLOCK_BYTES = 1 << 25


@dataclass(frozen=True)
class KernelFeatures:
    """The map x ↦ k(x, landmarks) @ weights − offset."""

    kernel: Kernel
    landmarks: FloatArray
    weights: FloatArray
    offset: FloatArray

    def block_rows(self) -> int:
        """How many rows to map at once so that a block of kernel values stays small."""
        return max(1, _BLOCK_BYTES // (8 * len(self.landmarks)))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the features of a block of rows."""
        return np.asarray(self.kernel(rows, self.landmarks) @ self.weights - self.offset)


def exact_features(kernel: Kernel, rows: FloatArray, *, center: bool) -> KernelFeatures:
    """Features of the whole kernel matrix through its eigenvectors: K = QΛQᵀ, G = QΛ^½; O(n³) time, O(n²) memory."""
    values = _kernel_matrix(kernel, rows)
    column_means = values.mean(axis=0)
    if center:
        # In place: H K H of a matrix that is the largest object here.
        values -= column_means
        values -= column_means[:, None] - column_means.mean()
    eigenvalues, vectors = eigh(values, overwrite_a=True)
    kept = eigenvalues > _EIGENVALUE_FLOOR * max(eigenvalues[-1], 0.0)
    weights = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    # Eigenvectors of the centred matrix sum to zero, so centring a new row only shifts its features by a constant.
    offset = column_means @ weights if center else np.zeros(weights.shape[1])
    return KernelFeatures(kernel, rows, weights, offset)


def nystrom_features(kernel: Kernel, rows: FloatArray, n_landmarks: int, *, center: bool, seed: int) -> KernelFeatures:
    """Nyström: G = K_nm K_mm^(−½) on m rows drawn at random; O(n m d + m³) time, O(m²) memory."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_landmarks])
    landmarks = np.ascontiguousarray(rows[chosen])
    eigenvalues, vectors = eigh(kernel(landmarks, landmarks))
    kept = eigenvalues > _EIGENVALUE_FLOOR * max(eigenvalues[-1], 0.0)
    features = KernelFeatures(kernel, landmarks, vectors[:, kept] / np.sqrt(eigenvalues[kept]), np.zeros(kept.sum()))
    return _centred(features, rows) if center else features


def cholesky_features(
    kernel: Kernel, rows: FloatArray, max_rank: int, tolerance: float, *, center: bool
) -> KernelFeatures:
    """Incomplete Cholesky with pivoting (partial Gram–Schmidt): stop when the residual is ``tolerance`` of the trace.

    Chooses landmarks one by one where the current approximation is worst; needs one kernel column each.
    """
    residual = np.array([kernel(row[None], row[None])[0, 0] for row in rows])
    trace, limit = residual.sum(), min(max_rank, len(rows))
    factor = np.zeros((len(rows), limit))
    pivots: list[int] = []
    while len(pivots) < limit and residual.sum() > tolerance * trace:
        pivot = int(residual.argmax())
        done = len(pivots)
        column = kernel(rows, rows[pivot : pivot + 1])[:, 0] - factor[:, :done] @ factor[pivot, :done]
        factor[:, done] = column / np.sqrt(residual[pivot])
        # Cancellation makes residuals slightly negative; a pivot is done for good.
        residual = np.maximum(residual - factor[:, done] ** 2, 0.0)
        pivots.append(pivot)
        residual[pivots] = 0.0
    triangle = factor[pivots, : len(pivots)]
    weights = solve_triangular(triangle, np.eye(len(pivots)), lower=True).T
    offset = factor[:, : len(pivots)].mean(axis=0) if center else np.zeros(len(pivots))
    return KernelFeatures(kernel, np.ascontiguousarray(rows[pivots]), weights, offset)


def _kernel_matrix(kernel: Kernel, rows: FloatArray) -> FloatArray:
    values = np.empty((len(rows), len(rows)))
    for block in row_blocks(len(rows), max(1, _BLOCK_BYTES // (8 * len(rows)))):
        values[block] = kernel(rows[block], rows)
    return values


def _centred(features: KernelFeatures, rows: FloatArray) -> KernelFeatures:
    total = np.zeros(features.weights.shape[1])
    for block in row_blocks(len(rows), features.block_rows()):
        total += features(rows[block]).sum(axis=0)
    return KernelFeatures(features.kernel, features.landmarks, features.weights, total / len(rows))
