"""Explicit features whose inner products are, or approximate, a kernel.

All three routes end in the same linear form, g(x) = k(x, landmarks) @ weights with K ≈ G Gᵀ, which is why one linear
method behind them serves the exact and the approximate case alike. Each also knows the features of its training rows,
which come out of the factorisation for free or are computed block by block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular

from diptych.arrays import FloatArray, row_blocks
from diptych.models.correlation.kernels import Kernel

_EIGENVALUE_FLOOR = 1e-10
_BLOCK_BYTES = 1 << 25


@dataclass(frozen=True)
class KernelFeatures:
    """The map x ↦ k(x, landmarks) @ weights, and the features of the training rows."""

    kernel: Kernel
    landmarks: FloatArray
    weights: FloatArray
    training: Callable[[slice], FloatArray]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the features of new rows."""
        return evaluate_kernel(self.kernel, rows, self.landmarks, self.weights)


def exact_features(kernel: Kernel, rows: FloatArray) -> KernelFeatures:
    """Features of the whole kernel matrix through its eigenvectors: K = QΛQᵀ, G = QΛ^½; O(n³) time, O(n²) memory."""
    values = _kernel_matrix(kernel, rows)
    eigenvalues, vectors = eigh(values, overwrite_a=True)
    kept = eigenvalues > _EIGENVALUE_FLOOR * max(eigenvalues[-1], 0.0)
    roots, vectors = np.sqrt(eigenvalues[kept]), vectors[:, kept]
    return KernelFeatures(kernel, rows, vectors / roots, lambda block: vectors[block] * roots)


def nystrom_features(kernel: Kernel, rows: FloatArray, n_landmarks: int, *, seed: int) -> KernelFeatures:
    """Nyström: G = K_nm K_mm^(−½) on m rows drawn at random; O(n m d + m³) time, O(m²) memory."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_landmarks])
    landmarks = np.ascontiguousarray(rows[chosen])
    eigenvalues, vectors = eigh(kernel(landmarks, landmarks))
    kept = eigenvalues > _EIGENVALUE_FLOOR * max(eigenvalues[-1], 0.0)
    weights = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    return KernelFeatures(
        kernel, landmarks, weights, lambda block: evaluate_kernel(kernel, rows[block], landmarks, weights)
    )


def cholesky_features(kernel: Kernel, rows: FloatArray, max_rank: int, tolerance: float) -> KernelFeatures:
    """Incomplete Cholesky with pivoting (partial Gram–Schmidt): stop when the residual is ``tolerance`` of the trace.

    Chooses landmarks one by one where the current approximation is worst; needs one kernel column each.
    """
    residual = kernel.diagonal(rows)
    trace, limit = residual.sum(), min(max_rank, len(rows))
    noise = len(rows) * np.finfo(np.float64).eps * residual.max()
    factor = np.zeros((len(rows), limit))
    pivots: list[int] = []
    while len(pivots) < limit and (not pivots or residual.sum() > tolerance * trace):
        pivot = int(residual.argmax())
        if residual[pivot] <= noise:
            break
        done = len(pivots)
        column = kernel(rows, rows[pivot : pivot + 1])[:, 0] - factor[:, :done] @ factor[pivot, :done]
        factor[:, done] = column / np.sqrt(residual[pivot])
        # Cancellation makes residuals slightly negative; a pivot is done for good.
        residual = np.maximum(residual - factor[:, done] ** 2, 0.0)
        pivots.append(pivot)
        residual[pivots] = 0.0
    factor = factor[:, : len(pivots)]
    weights = solve_triangular(factor[pivots], np.eye(len(pivots)), lower=True).T
    return KernelFeatures(kernel, np.ascontiguousarray(rows[pivots]), weights, lambda block: factor[block])


def evaluate_kernel(kernel: Kernel, rows: FloatArray, landmarks: FloatArray, weights: FloatArray) -> FloatArray:
    """Return k(rows, landmarks) @ weights without ever holding more than a block of kernel values."""
    points = np.empty((len(rows), weights.shape[1]))
    for block in row_blocks(len(rows), max(1, _BLOCK_BYTES // (8 * len(landmarks)))):
        points[block] = kernel(rows[block], landmarks) @ weights
    return points


def _kernel_matrix(kernel: Kernel, rows: FloatArray) -> FloatArray:
    values = np.empty((len(rows), len(rows)))
    for block in row_blocks(len(rows), max(1, _BLOCK_BYTES // (8 * len(rows)))):
        values[block] = kernel(rows[block], rows)
    return values
