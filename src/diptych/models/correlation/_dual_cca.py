"""Kernel CCA of whole kernel matrices by factors and products alone: the leading components, no decomposition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.linear import fix_signs

# Columns of a block beyond those wanted: with them a product costs little more, and fewer products are needed.
_SPARE_COLUMNS = 10
_TOLERANCE, _LARGEST_ERROR, _GROWTH = 1e-12, 1e-10, 1.1
# Shares of the longest squared length of a block: below the first a direction is rounding, below the second inexact.
_DEPENDENT, _SLANTED = 1e-14, 1e-6
# Squares of objectives, as they are found here, are known down to the rounding unit.
_LEAST_OBJECTIVE = 8 * float(np.sqrt(np.finfo(np.float64).eps))

Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class ShrunkKernel:
    """R = ((1−κ)K + κI)⁻¹ and S = KR of a kernel matrix K, by the Cholesky factor of R⁻¹; 0 < κ < 1."""

    factor: FloatArray
    kappa: float

    @classmethod
    def of(cls, kernel: FloatArray, kappa: float) -> ShrunkKernel:
        """Factor R⁻¹ in the memory of ``kernel``."""
        kernel *= 1 - kappa
        kernel.flat[:: len(kernel) + 1] += kappa
        # The transpose is the same matrix in the order that LAPACK works on without a copy.
        return cls(scipy.linalg.cholesky(kernel.T, lower=True, overwrite_a=True, check_finite=False), kappa)

    def solve(self, columns: FloatArray) -> FloatArray:
        """Return R times ``columns``."""
        return np.asarray(scipy.linalg.cho_solve((self.factor, True), columns, check_finite=False))

    def smooth(self, columns: FloatArray) -> FloatArray:
        """Return S times ``columns``: KR = (I − κR)/(1−κ) needs no product with K."""
        return np.asarray((columns - self.kappa * self.solve(columns)) / (1 - self.kappa))


def dual_directions(
    image_kernel: FloatArray, text_kernel: FloatArray, kappa: float, n_components: int, *, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return (α, objective, β): coefficients of the training rows, components in decreasing objective.

    None where they are not found by products alone. The kernel matrices are overwritten.

    Where the objective of `KCCA` is stationary,  ρα = R_a K_b β  and  ρβ = R_b K_a α.  The points a = K_a α and
    b = K_b β then have  ρa = S_a b  and  ρb = S_b a,  so that b are eigenvectors of S_b S_a. In the inner product
    xᵀS_a y that operator is self-adjoint.
    """
    # The largest eigenvalue is at least this. Where κ outweighs it, S is small beside I and loses digits.
    if min(float(np.vdot(kernel, kernel)) / np.trace(kernel) for kernel in (image_kernel, text_kernel)) < kappa:
        return None
    images, texts = ShrunkKernel.of(image_kernel, kappa), ShrunkKernel.of(text_kernel, kappa)
    found = leading_eigenpairs(texts.smooth, images.smooth, len(image_kernel), n_components, seed=seed)
    if found is None:
        return None
    squares, points = found
    objective = np.sqrt(np.maximum(squares, 0))
    real = objective > _LEAST_OBJECTIVE * objective[0]
    objective, points = objective[real], points[:, real]
    alpha, beta = images.solve(points), texts.solve(images.smooth(points)) / objective
    alpha, beta = fix_signs(alpha, beta)
    return alpha, objective, beta


def leading_eigenpairs(
    outer: Operator, inner: Operator, size: int, count: int, *, seed: int
) -> tuple[FloatArray, FloatArray] | None:
    """Return the ``count`` largest eigenvalues of  outer∘inner,  falling, and vectors v with vᵀ inner(v) = 1.

    Both operators are symmetric and have no negative eigenvalue. This is the block Lanczos method in the inner product
    of ``inner``, each block made orthogonal to all before it: Golub and Underwood, "The block Lanczos method for
    computing eigenvalues", 1977. There are fewer pairs where the operator has no more, and None where half of all
    directions do not hold them to rounding: a decomposition is cheaper then.
    """
    # What starts in the range of the operator stays there: a constant, which centring takes out, is never in it.
    start = np.random.default_rng(seed).normal(size=(size, count + _SPARE_COLUMNS))
    block, duals, _ = _orthonormal(outer(inner(start)), inner)
    basis, dual_basis, checked = block, duals, 0
    projected: FloatArray = np.empty((0, 0))
    while 2 * basis.shape[1] <= size and block.shape[1]:
        product = outer(duals)
        projected = _bordered(projected, dual_basis.T @ product)
        # Twice, since once leaves what rounding makes of almost parallel columns.
        for _ in range(2):
            product = product - basis @ (dual_basis.T @ product)
        width = block.shape[1]
        block, duals, lengths = _orthonormal(product, inner)
        # The cube of the width is worth paying when it has grown, or ends here.
        if len(projected) >= _GROWTH * checked or not block.shape[1]:
            checked = len(projected)
            values, vectors = np.linalg.eigh(projected)
            values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
            if np.abs(lengths @ vectors[-width:]).max(initial=0.0) <= _TOLERANCE * values[0]:
                found = basis @ vectors
                error = np.linalg.norm(outer(inner(found)) - found * values, axis=0)
                exact = error <= _LARGEST_ERROR * values[0] * np.linalg.norm(found, axis=0)
                return (values, found) if exact.all() else None
        basis, dual_basis = np.hstack([basis, block]), np.hstack([dual_basis, duals])
    return None


def _orthonormal(block: FloatArray, inner: Operator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return an orthonormal basis of the columns, ``inner`` of it, and the block in terms of this basis."""
    basis, duals, lengths, is_slanted = _normalised(block, inner(block))
    if is_slanted:
        basis, duals, again, _ = _normalised(basis, inner(basis))
        lengths = again @ lengths
    return basis, duals, lengths


def _normalised(block: FloatArray, duals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    """Do so once, and say whether columns were so close to parallel that rounding leaves the basis a little slanted."""
    squares, rotation = np.linalg.eigh(block.T @ duals)
    longest = max(float(squares[-1]), 0.0) if len(squares) else 0.0
    real = squares > _DEPENDENT * longest
    squares, rotation = squares[real], rotation[:, real]
    lengths = np.sqrt(squares)
    unit = rotation / lengths
    is_slanted = bool((squares < _SLANTED * longest).any())
    return block @ unit, duals @ unit, lengths[:, None] * rotation.T, is_slanted


def _bordered(matrix: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the symmetric matrix with some more columns at the right, and their mirror image below."""
    old, new = len(matrix), len(columns)
    grown = np.empty((new, new))
    grown[:old, :old], grown[:, old:], grown[old:, :old] = matrix, columns, columns[:old].T
    return grown
