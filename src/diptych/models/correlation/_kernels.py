"""Kernels between rows, and explicit features whose inner products are, or approximate, a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from diptych.arrays import FloatArray, map_rows, row_blocks
from diptych.errors import InvalidInputError, UnknownNameError

# Mean distances are estimated on this many rows: a quarter of a million pairs settle the mean to a percent or two.
_SAMPLE_ROWS = 500
_TILE_ROWS, _TILE_COLUMNS = 32, 1024


@dataclass(frozen=True)
class Kernel:
    """A kernel by name; ``scale`` is the mean distance γ of the training rows for those with an exponent.

    ================ =====================================================================
    ``chi2_rbf``     exp(−χ²(x, y)/γ), χ²(x, y) = Σ (xᵢ − yᵢ)²/(xᵢ + yᵢ), for histograms
    ``intersection`` Σ min(xᵢ, yᵢ), for histograms and topic proportions
    ``rbf``          exp(−‖x − y‖²/γ), for any features
    ``exponential``  exp(−‖x − y‖/γ), for any features
    ``linear``       x·y
    ================ =====================================================================
    """

    name: str
    scale: float = 1.0

    @classmethod
    def fitted(cls, name: str, rows: FloatArray, *, side: str, seed: int = 0) -> Kernel:
        """Check that ``rows`` suit the kernel and set its scale to their mean distance."""
        if name not in _KERNELS:
            raise UnknownNameError("kernel", name, _KERNELS)
        cls(name).check(rows, side=side)
        if name not in _DISTANCES:
            return cls(name)
        chosen = np.random.default_rng(seed).permutation(len(rows))[:_SAMPLE_ROWS]
        mean = float(_DISTANCES[name](rows[chosen], rows[chosen]).mean())
        return cls(name, mean if mean > 0 else 1.0)

    def check(self, rows: FloatArray, *, side: str) -> None:
        """Raise when ``rows`` cannot be what the kernel compares."""
        if self.name in ("chi2_rbf", "intersection") and rows.min() < 0:
            raise InvalidInputError(
                f"the {self.name} kernel compares histograms, but {side} have negative entries; use 'rbf' or 'auto'"
            )

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the (left, right) matrix of kernel values."""
        return _KERNELS[self.name](left, right, self.scale)

    def diagonal(self, rows: FloatArray) -> FloatArray:
        """Return k(x, x) of every row."""
        if self.name in _DISTANCES:
            return np.ones(len(rows))
        return np.asarray(rows.sum(axis=1) if self.name == "intersection" else (rows**2).sum(axis=1))


def _chi2(left: FloatArray, right: FloatArray) -> FloatArray:
    # Σ (x−y)²/(x+y) = Σx + Σy − 4 Σ 1/(1/x + 1/y): a few cheap passes a feature over a tile that stays in cache.
    shared = np.empty((len(left), len(right)))
    left_parts, right_parts = _reciprocals(left), _reciprocals(right)
    for rows in row_blocks(len(left), _TILE_ROWS):
        for columns in row_blocks(len(right), _TILE_COLUMNS):
            shared[rows, columns] = _half_harmonic_means(left_parts[:, rows], right_parts[:, columns])
    distances = left.sum(axis=1, dtype=np.float64)[:, None] + right.sum(axis=1, dtype=np.float64) - 4 * shared
    return np.asarray(np.maximum(distances, 0))


def _half_harmonic_means(left: FloatArray, right: FloatArray) -> FloatArray:
    """Σ xy/(x+y) over the features from 1/x and 1/y; an empty bin is 1/∞ and adds nothing, as the definition wants."""
    total = np.zeros((left.shape[1], right.shape[1]))
    term = np.empty_like(total)
    for x, y in zip(left, right, strict=True):
        # Not in one step: NumPy adds in place twice as fast as into another array.
        term[...] = y
        term += x[:, None]
        np.reciprocal(term, out=term)
        total += term
    return total


def _reciprocals(rows: FloatArray) -> FloatArray:
    """Return 1/x, one row per feature."""
    columns = np.ascontiguousarray(rows.T, dtype=np.float64)
    return np.divide(1.0, columns, out=np.full_like(columns, np.inf), where=columns > 0)


def _squared_euclidean(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(scipy.spatial.distance.cdist(left, right, "sqeuclidean"))


def _intersection(left: FloatArray, right: FloatArray) -> FloatArray:
    # min(x, y) = (x + y − |x − y|) / 2 turns the sum of minima into a city-block distance, which SciPy has in C.
    return np.asarray(
        (left.sum(axis=1)[:, None] + right.sum(axis=1) - scipy.spatial.distance.cdist(left, right, "cityblock")) / 2
    )


def _euclidean(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(scipy.spatial.distance.cdist(left, right))


_DISTANCES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "chi2_rbf": _chi2,
    "rbf": _squared_euclidean,
    "exponential": _euclidean,
}
_KERNELS: dict[str, Callable[[FloatArray, FloatArray, float], FloatArray]] = {
    "chi2_rbf": lambda left, right, scale: np.exp(-_chi2(left, right) / scale),
    "intersection": lambda left, right, scale: _intersection(left, right),
    "rbf": lambda left, right, scale: np.exp(-_squared_euclidean(left, right) / scale),
    "exponential": lambda left, right, scale: np.exp(-_euclidean(left, right) / scale),
    "linear": lambda left, right, scale: left.astype(np.float64) @ right.T.astype(np.float64),
}

_EIGENVALUE_FLOOR = 1e-10
_BLOCK_BYTES = 1 << 25
_SYMMETRIC_ROWS = 128


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


def kernel_matrix(kernel: Kernel, rows: FloatArray) -> FloatArray:
    """Return k of every two rows; each two are compared once."""
    values = np.empty((len(rows), len(rows)))
    for block in row_blocks(len(rows), _SYMMETRIC_ROWS):
        values[block, block.start :] = kernel(rows[block], rows[block.start :])
        values[block.stop :, block] = values[block, block.stop :].T
    return values


def exact_features(kernel: Kernel, rows: FloatArray) -> KernelFeatures:
    """Features of the whole kernel matrix through its eigenvectors: K = QΛQᵀ, G = QΛ^½; O(n³) time, O(n²) memory."""
    eigenvalues, vectors = scipy.linalg.eigh(kernel_matrix(kernel, rows), overwrite_a=True)
    kept = eigenvalues > _EIGENVALUE_FLOOR * max(eigenvalues[-1], 0.0)
    roots, vectors = np.sqrt(eigenvalues[kept]), vectors[:, kept]
    return KernelFeatures(kernel, rows, vectors / roots, lambda block: vectors[block] * roots)


def nystrom_features(kernel: Kernel, rows: FloatArray, n_landmarks: int, *, seed: int) -> KernelFeatures:
    """Nyström: G = K_nm K_mm^(−½) on m rows drawn at random; O(n m d + m³) time, O(m²) memory."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_landmarks])
    landmarks = np.ascontiguousarray(rows[chosen])
    eigenvalues, vectors = scipy.linalg.eigh(kernel(landmarks, landmarks))
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
    weights = scipy.linalg.solve_triangular(factor[pivots], np.eye(len(pivots)), lower=True).T
    return KernelFeatures(kernel, np.ascontiguousarray(rows[pivots]), weights, lambda block: factor[block])


def evaluate_kernel(kernel: Kernel, rows: FloatArray, landmarks: FloatArray, weights: FloatArray) -> FloatArray:
    """Return k(rows, landmarks) @ weights without ever holding more than a block of kernel values."""
    size, block_rows = weights.shape[1], _BLOCK_BYTES // (8 * len(landmarks))
    return map_rows(
        lambda block: kernel(block, landmarks) @ weights, rows, size, dtype=np.float64, block_rows=block_rows
    )
