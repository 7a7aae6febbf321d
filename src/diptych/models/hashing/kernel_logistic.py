"""Kernel logistic regression of all bits of one side together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from diptych.arrays import FloatArray, row_blocks
from diptych.models.linear import column_means

_BLOCK_BYTES = 1 << 25
_EIGENVALUE_FLOOR = 1e-10
_ROWS_PER_CENTRE = 20
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class KernelBasis:
    """The features exp(−‖x − z‖²/s²) of a row: one per centre z; s² is the mean squared distance of training rows.

    Rows are kept as (x − mean)/s, which makes the features independent of the unit of the data.
    """

    mean: FloatArray
    scale: float
    centres: FloatArray

    @classmethod
    def fitted(cls, rows: FloatArray, n_centres: int, *, seed: int) -> KernelBasis:
        """Place at most ``n_centres`` centres by k-means; fewer different rows are all of them centres."""
        mean = column_means(rows)
        squares = sum(float(((rows[block] - mean) ** 2).sum()) for block in _blocks(rows, rows.shape[1]))
        # The mean of ‖xᵢ − xⱼ‖² over all pairs is twice the total variance.
        scale = float(np.sqrt(2 * squares / len(rows)))
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(rows))[: _ROWS_PER_CENTRE * n_centres])
        points = np.unique((rows[chosen].astype(np.float64) - mean) / scale, axis=0)
        if len(points) > n_centres:
            means = KMeans(n_centres, init="random", n_init=1, max_iter=100, random_state=int(rng.integers(1 << 31)))
            points = means.fit(points).cluster_centers_
        return cls(mean, scale, points)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the features of ``rows`` in float64."""
        points = (rows.astype(np.float64) - self.mean) / self.scale
        # Rows are centred and of unit size, so that expanding the square loses no digits that matter.
        distances = (points**2).sum(axis=1)[:, None] + (self.centres**2).sum(axis=1) - 2 * points @ self.centres.T
        return np.asarray(np.exp(-np.maximum(distances, 0)))

    def outputs(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """Return features times ``weights`` block by block, in the precision of ``rows``."""
        values = np.empty((len(rows), weights.shape[1]), dtype=rows.dtype)
        for block in _blocks(rows, len(self.centres)):
            values[block] = self(rows[block]) @ weights
        return values


def fit_kernel_logistic(
    basis: KernelBasis, rows: FloatArray, signs: FloatArray, *, regularization: float, max_iter: int
) -> FloatArray:
    """Return the weights, one column per bit, that minimise  Σᵢ log(1 + exp(−hᵢ φᵢᵀw)) + c wᵀK₀w.

    K₀ is the kernel between the centres. In the coordinates v = K₀^½ w the penalty is c‖v‖², and L-BFGS on all columns
    at once needs two products with one matrix for each step.
    """
    values, vectors = eigh(basis(basis.centres * basis.scale + basis.mean))
    kept = values > _EIGENVALUE_FLOOR * values[-1]
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    features = np.empty((len(rows), whitening.shape[1]))
    for block in _blocks(rows, len(basis.centres)):
        features[block] = basis(rows[block]) @ whitening

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(features.shape[1], signs.shape[1])
        value, gradient = regularization * float((weights**2).sum()), 2 * regularization * weights
        for block in _blocks(rows, features.shape[1]):
            margins = signs[block] * (features[block] @ weights)
            value += float(np.logaddexp(0, -margins).sum())
            gradient -= features[block].T @ (signs[block] * expit(-margins))
        return value, gradient.ravel()

    slope = np.abs(features.T @ signs).max() / 2
    options = {"maxiter": max_iter, "gtol": _TOLERANCE * slope, "ftol": 0.0, "maxcor": 20}
    solution = minimize(
        objective, np.zeros(features.shape[1] * signs.shape[1]), jac=True, method="L-BFGS-B", options=options
    )
    if solution.nit >= max_iter:
        warnings.warn(
            f"kernel logistic regression stopped after {max_iter} iterations before it converged; raise max_iter or "
            "regularization",
            ConvergenceWarning,
            stacklevel=2,
        )
    return np.asarray(whitening @ solution.x.reshape(features.shape[1], signs.shape[1]))


def _blocks(rows: FloatArray, width: int) -> list[slice]:
    return list(row_blocks(len(rows), _BLOCK_BYTES // (8 * width)))
