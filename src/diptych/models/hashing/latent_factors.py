"""Binary latent factors of a matrix that says which pairs share a label."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from diptych.arrays import FloatArray, row_blocks

_BLOCK_NUMBERS = 1 << 19


def latent_factor_codes(
    labels: FloatArray, n_bits: int, *, strength: float, n_columns: int, max_iter: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return codes U of one side and V of the other, −1 and +1, that make the likelihood of shared labels large.

    Every round improves U against ``n_columns`` rows of V drawn at random, then V against as many rows of U.
    """
    rng = np.random.default_rng(seed)
    left, right = (np.where(rng.random((len(labels), n_bits)) < 0.5, -1.0, 1.0) for _ in range(2))
    for _ in range(max_iter):
        for codes, other in ((left, right), (right, left)):
            drawn = rng.choice(len(labels), min(n_columns, len(labels)), replace=False)
            improve_codes(codes, labels, other[drawn], labels[drawn], strength=strength)
    return left, right


def improve_codes(
    codes: FloatArray, labels: FloatArray, other: FloatArray, other_labels: FloatArray, *, strength: float
) -> None:
    """Improve ``codes`` in place, bit after bit, given the codes of the ``other`` side.

    With Θ = (λ/q) U Vᵀ the log-likelihood Σ SΘ − log(1 + exp Θ) has a curvature of at most mλ²/(4q²) in one number of
    U, where m is the number of rows of V. The quadratic below it that touches it at the present code is largest over ±1
    at the sign of  gradient + mλ²/(4q²)·u,  so that no step lowers the likelihood.
    """
    rate = strength / codes.shape[1]
    curvature = len(other) * rate**2 / 4
    for rows in row_blocks(len(codes), _BLOCK_NUMBERS // len(other)):
        similar = labels[rows] @ other_labels.T > 0
        block = codes[rows]
        theta = rate * (block @ other.T)
        unexplained = similar - expit(theta)
        for bit in range(codes.shape[1]):
            slope = rate * (unexplained @ other[:, bit]) + curvature * block[:, bit]
            # Few rows turn once codes have settled, and only theirs is computed anew.
            turned = np.flatnonzero((slope >= 0) != (block[:, bit] > 0))
            block[turned, bit] *= -1
            theta[turned] += 2 * rate * np.outer(block[turned, bit], other[:, bit])
            unexplained[turned] = similar[turned] - expit(theta[turned])
