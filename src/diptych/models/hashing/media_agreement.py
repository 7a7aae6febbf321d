"""What inter-media hashing maximises, as an operator that never becomes a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh

from diptych.arrays import FloatArray

# Up to so many pairs the matrix is small enough to be solved whole, which degenerate data cannot upset.
_WHOLE = 512
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class MediaAgreement:
    """The operator Σ_t Z_t Z_tᵀ − λ Σ_t Lap_t over columns of one number per pair.

    Z_t are centred rows of a side times a whitener of XᵀX + βI, so that Z_t Z_tᵀ is the shrunk regression on the side;
    ``graph`` is the sum of the sides' neighbour graphs, whose Laplacian is that of the sum.
    """

    sides: tuple[FloatArray, FloatArray]
    graph: csr_array
    smoothness: float

    def explained(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the regressions of ``columns`` on each side."""
        first, second = (_regressed(side, columns) for side in self.sides)
        return first, second

    def apply(self, columns: FloatArray) -> FloatArray:
        """Return the operator's value at ``columns``."""
        first, second = self.explained(columns)
        rough = (self._degrees * columns.T).T - self.graph @ columns
        return np.asarray(first + second - self.smoothness * rough)

    def top(self, count: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the ``count`` largest values, falling, and their orthonormal columns, all orthogonal to a constant.

        A constant, which no side's centred rows explain and no graph punishes, has the value 0 and would be a bit that
        all items share.
        """
        n_pairs = self.graph.shape[0]
        count = min(count, n_pairs - 1)
        if n_pairs <= _WHOLE:
            matrix = self._without_constant(np.eye(n_pairs))
            values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=[n_pairs - count, n_pairs - 1])
        else:
            operator = LinearOperator((n_pairs, n_pairs), matvec=self._without_constant, dtype=np.float64)
            start = np.random.default_rng(seed).normal(size=n_pairs)
            values, vectors = eigsh(operator, count, which="LA", v0=start - start.mean(), tol=_TOLERANCE)
        order = np.argsort(values)[::-1]
        return values[order], vectors[:, order]

    @property
    def _degrees(self) -> FloatArray:
        return np.asarray(self.graph.sum(axis=1)).ravel()

    def _without_constant(self, columns: FloatArray) -> FloatArray:
        # Below every other value: a Laplacian's are at most twice its largest degree.
        below = 1 + 2 * self.smoothness * float(self._degrees.max())
        return np.asarray(self.apply(columns) - below * columns.mean(axis=0))


def _regressed(side: FloatArray, columns: FloatArray) -> FloatArray:
    return np.asarray(side @ (side.T @ columns.astype(side.dtype, copy=False)), dtype=np.float64)
