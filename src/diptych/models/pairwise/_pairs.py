"""Sums over pairs: all of them or a sample, losses of their scores, and the L-BFGS that minimises them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.estimators import scikit_learn
from diptych.models.parameters import check_count


@dataclass(frozen=True)
class PairSums:
    """The summed loss of all pairs, and its derivatives R = ∂loss/∂scores folded into either side."""

    value: float
    by_left: FloatArray  # R @ right, one row for each left item.
    by_right: FloatArray  # Rᵀ @ left, one row for each right item.


PairLoss = Literal["logistic", "squared"]
RowLoss = Callable[[FloatArray, slice], tuple[float, FloatArray]]
"""Takes scores of the pairs of some left items and which items these are; gives the summed loss and ∂loss/∂scores."""
RowSigns = Callable[[slice], FloatArray]
"""Gives z of the pairs of some left items: +1 where a pair matches, −1 where not; may broadcast over the items."""


def softplus_and_slope(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(1 + eᵛ) and its derivative 1/(1 + e⁻ᵛ) from one exponential that cannot overflow."""
    decay = np.exp(-np.abs(values))
    slope = np.where(values > 0, 1, decay) / (1 + decay)
    return np.asarray(np.log1p(decay) + np.maximum(values, 0)), np.asarray(slope)


def classification_loss(kind: PairLoss, signs: RowSigns, weights: FloatArray | float = 1.0) -> RowLoss:
    """Return Σ w ℓ(z, s) with ℓ = log(1 + e^(−zs)) or (s − z)²; ``weights`` broadcast over the pairs of an item."""

    def logistic(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        wanted = signs(rows)
        losses, slope = softplus_and_slope(-wanted * scores)
        return float((weights * losses).sum(dtype=np.float64)), np.asarray(-weights * wanted * slope)

    def squared(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        difference = scores - signs(rows)
        return float((weights * difference**2).sum(dtype=np.float64)), np.asarray(2 * weights * difference)

    return logistic if kind == "logistic" else squared


def ranking_loss(own: Callable[[slice], IntArray]) -> RowLoss:
    """Return Σ log(1 + e^(−(s_own − s))) over the others; ``own`` names the column of each item's partner."""

    def ranking(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        items, partner = np.arange(len(scores)), own(rows)
        losses, slope = softplus_and_slope(scores - scores[items, partner][:, None])
        losses[items, partner], slope[items, partner] = 0, 0
        slope[items, partner] = -slope.sum(axis=1)
        return float(losses.sum(dtype=np.float64)), slope

    return ranking


def distance_loss(signs: RowSigns, sharpness: float) -> RowLoss:
    """Return Σ ℓ_β(z (D² − 1)) with ℓ_β(u) = log(1 + e^(βu))/β, where the scores are squared distances D²."""

    def generalised_logistic(distances: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        wanted = signs(rows)
        losses, slope = softplus_and_slope(sharpness * wanted * (distances - 1))
        return float(losses.sum(dtype=np.float64)) / sharpness, np.asarray(wanted * slope)

    return generalised_logistic


def first_matches(n_columns: int) -> RowSigns:
    """Return the signs of sampled pairs: the first partner matches, the others do not."""
    signs = np.full((1, n_columns), -1.0)
    signs[0, 0] = 1
    return lambda rows: signs


def own_matches(n_rows: int) -> RowSigns:
    """Return the signs of all pairs of aligned rows: item i matches partner i alone."""

    def signs(rows: slice) -> FloatArray:
        block = np.full((rows.stop - rows.start, n_rows), -1.0)
        block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = 1
        return block

    return signs


# Small enough for a block and its derivatives to stay in cache, large enough for the products to be worth their call.
_BLOCK_SCORES = 1 << 18


@dataclass(frozen=True)
class AllPairs:
    """All n² pairs of n aligned rows; never more than a block of their scores exists."""

    n_rows: int

    @property
    def count(self) -> int:
        return self.n_rows**2

    def reduce(self, left: FloatArray, right: FloatArray, loss: RowLoss) -> PairSums:
        """Score every pair by the inner product of its points and sum loss and derivatives."""
        value = 0.0
        by_left, by_right = np.zeros(left.shape), np.zeros(right.shape)
        for rows in row_blocks(len(left), _BLOCK_SCORES // len(right)):
            loss_value, residual = loss(left[rows] @ right.T, rows)
            residual = residual.astype(left.dtype, copy=False)
            value += loss_value
            by_left[rows] = residual @ right
            by_right += residual.T @ left[rows]
        return PairSums(value, by_left, by_right)


_BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class SampledPairs:
    """Left item i is compared with the right items ``partners[i]``, the first of which belongs to it."""

    partners: IntArray

    @classmethod
    def unlabelled(cls, n_rows: int, ratio: int, rng: np.random.Generator) -> SampledPairs:
        """Pair each item with its own partner and with ``ratio`` others, drawn uniformly with replacement."""
        own = np.arange(n_rows)[:, None]
        others = rng.integers(n_rows - 1, size=(n_rows, ratio))
        # Skipping the own row keeps the draw uniform over all others.
        return cls(np.hstack([own, others + (others >= own)]))

    @property
    def count(self) -> int:
        return int(self.partners.size)

    def reduce(self, left: FloatArray, right: FloatArray, loss: RowLoss) -> PairSums:
        value, residual = loss(self._scores(left, right), slice(0, len(left)))
        ends = np.arange(len(left) + 1) * self.partners.shape[1]
        shape = (len(left), len(right))
        matrix = scipy.sparse.csr_array(
            (residual.ravel().astype(left.dtype, copy=False), self.partners.ravel(), ends), shape=shape
        )
        return PairSums(value, matrix @ right, matrix.T @ left)

    def _scores(self, left: FloatArray, right: FloatArray) -> FloatArray:
        scores = np.empty(self.partners.shape, dtype=left.dtype)
        for rows in row_blocks(len(left), _BLOCK_NUMBERS // (left.shape[1] * self.partners.shape[1])):
            scores[rows] = np.einsum("ik,imk->im", left[rows], right[self.partners[rows]])
        return scores


def matched_pairs(n_rows: int, ratio: int | None, random_state: int) -> tuple[AllPairs | SampledPairs, RowSigns]:
    """Return all pairs of aligned rows, or each own pair with ``ratio`` others drawn at random, and their signs."""
    if ratio is None:
        return AllPairs(n_rows), own_matches(n_rows)
    sampled = SampledPairs.unlabelled(n_rows, check_count("ratio", ratio), np.random.default_rng(random_state))
    return sampled, first_matches(ratio + 1)


@dataclass(frozen=True)
class PairTerm:
    """A set of pairs and what their scores cost; ``swapped`` pairs have texts on the left and pictures on the right."""

    pairs: AllPairs | SampledPairs
    loss: RowLoss
    swapped: bool = False


def curvature_and_start(loss: PairLoss, matched: float) -> tuple[float, float]:
    """Return the best constant score when the share ``matched`` of pairs matches, after the second derivative there."""
    if loss == "logistic":
        return matched * (1 - matched), math.log(matched / (1 - matched))
    return 2.0, 2 * matched - 1


@dataclass(frozen=True)
class PrincipalAxes:
    """A side in other coordinates: ``rows = original @ basis`` with orthonormal columns, and their mean squares."""

    rows: FloatArray
    basis: FloatArray
    energies: FloatArray

    @classmethod
    def of(cls, rows: FloatArray) -> PrincipalAxes:
        """Rotate ``rows`` to their principal axes about the origin and drop directions in which nothing lies."""
        values, vectors = scipy.linalg.eigh((rows.T @ rows).astype(np.float64) / len(rows))
        noise = max(rows.shape) * float(np.finfo(rows.dtype).eps)
        kept = np.flatnonzero(values > noise * max(float(values[-1]), 0.0))[::-1]
        basis = vectors[:, kept]
        return cls(rows @ basis.astype(rows.dtype, copy=False), basis, values[kept])

    @classmethod
    def unrotated(cls, rows: FloatArray) -> PrincipalAxes:
        """Keep the features as they are, for objectives that treat single features differently."""
        return cls(rows, np.eye(rows.shape[1]), (rows**2).mean(axis=0, dtype=np.float64))


Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""Gives value and gradient at a point."""


def minimise(
    objective: Objective, start: FloatArray, *, slope: FloatArray, tol: float, max_iter: int, hint: str
) -> FloatArray:
    """Return where the gradient has shrunk to ``tol`` times the largest entry of ``slope``.

    ``hint`` completes the warning that is given when ``max_iter`` iterations were not enough.
    """
    options = {"maxiter": max_iter, "gtol": tol * float(np.abs(slope).max()), "ftol": 0.0, "maxcor": 20}
    solution = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if solution.nit >= max_iter:
        warnings.warn(
            f"the fit to pairs stopped after {max_iter} iterations before it converged; raise max_iter or {hint}",
            scikit_learn("sklearn.exceptions").ConvergenceWarning,
            stacklevel=2,
        )
    return np.asarray(solution.x)
