"""Deflation of partial least squares on moments alone, in thin products and changes of rank one."""

from __future__ import annotations

import numpy as np
import scipy

from diptych.arrays import FloatArray

# A component whose image scores carry less than this share of the variance is rounding.
_LEAST_SHARE = 1e-12
# From this width on, Lanczos iterations find one eigenvector sooner than a decomposition does.
_LANCZOS_WIDTH = 350
# A Gram matrix that was changed in place keeps the digits of values down to this share of its first.
_TRUSTED_SHARE = 1 / 16


def deflate(image: FloatArray, cross: FloatArray, n_components: int, precision: float) -> tuple[FloatArray, FloatArray]:
    """Return image weights for undeflated data and text loadings, from AᵀA and AᵀB alone.

    AᵀA is never deflated: scores of weights that are orthogonal to the former ones, in AᵀA, are what deflated data
    would give. With R for the weights and P for the image loadings, that is x − R Pᵀx.
    """
    covariance = ShrinkingMatrix(cross)
    least_variance = max(_LEAST_SHARE, precision**2) * float(np.trace(image))
    least_covariance = max(1e-10, 8 * precision) * float(np.linalg.norm(cross))
    weights, loadings = (np.empty((len(image), n_components), order="F") for _ in range(2))
    text_loadings = np.empty((cross.shape[1], n_components), order="F")
    found = 0
    while found < n_components:
        weight, strength = covariance.leading()
        if strength <= least_covariance:
            break
        for _ in range(2):  # Once leaves what rounding makes of the difference.
            weight = weight - weights[:, :found] @ (weight @ loadings[:, :found])
        length = float(np.linalg.norm(weight))
        if length == 0:
            break
        weight /= length
        spread = image @ weight
        variance = float(weight @ spread)
        if variance <= least_variance:
            break
        explained = covariance.products(weight)
        weights[:, found], loadings[:, found], text_loadings[:, found] = weight, spread / variance, explained / variance
        covariance.subtract(spread / variance, explained)
        found += 1
    return weights[:, :found], text_loadings[:, :found]


class ShrinkingMatrix:
    """A matrix that loses one matrix of rank one after another, and its leading singular vector at any time.

    The vector is an eigenvector of the Gram matrix of the narrower side, which is changed along with the matrix: by
    rank two, where multiplying anew would take as long as everything else. What is small beside the first values has
    lost digits to them, so that the product is made anew whenever values have fallen far.
    """

    _gram: FloatArray

    def __init__(self, matrix: FloatArray) -> None:
        self._is_wide = matrix.shape[0] < matrix.shape[1]
        # The routines of BLAS change matrices in Fortran's order in place.
        self._tall = np.array(matrix.T if self._is_wide else matrix, dtype=np.float64, order="F")
        self._start = np.random.default_rng(0).normal(size=self._tall.shape[1])
        self._renew()

    def leading(self) -> tuple[FloatArray, float]:
        """Return a vector along the leading left singular vector, and the singular value."""
        square, vector = self._top()
        if square < _TRUSTED_SHARE * self._first:
            self._renew()
            square, vector = self._top()
        return vector if self._is_wide else self._tall @ vector, float(np.sqrt(max(square, 0.0)))

    def products(self, left: FloatArray) -> FloatArray:
        """Return the products of all columns with ``left``."""
        return np.asarray(self._tall @ left if self._is_wide else left @ self._tall)

    def subtract(self, left: FloatArray, right: FloatArray) -> None:
        """Subtract the outer product of two vectors."""
        long, short = (right, left) if self._is_wide else (left, right)
        # (T − lsᵀ)ᵀ(T − lsᵀ) = TᵀT − hsᵀ − shᵀ
        half = long @ self._tall - float(long @ long) / 2 * short
        self._gram = scipy.linalg.blas.dsyr2(-1.0, half, short, a=self._gram, overwrite_a=1)
        self._tall = scipy.linalg.blas.dger(-1.0, long, short, a=self._tall, overwrite_a=1)

    def _renew(self) -> None:
        self._gram = np.asfortranarray(self._tall.T @ self._tall)
        self._first = 0.0

    def _top(self) -> tuple[float, FloatArray]:
        """Return the largest eigenvalue and its vector; only the upper half of the Gram matrix is kept up."""
        size = len(self._gram)
        if size < _LANCZOS_WIDTH:
            values, vectors = scipy.linalg.eigh(self._gram, lower=False, subset_by_index=[size - 1, size - 1])
        else:
            operator = scipy.sparse.linalg.LinearOperator(
                (size, size), matvec=lambda vector: scipy.linalg.blas.dsymv(1.0, self._gram, vector), dtype=np.float64
            )
            values, vectors = scipy.sparse.linalg.eigsh(operator, 1, which="LA", v0=self._start, tol=0)
        self._first = max(self._first, float(values[0]))
        return float(values[0]), vectors[:, 0]
