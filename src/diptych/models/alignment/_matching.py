"""Matching two sets of centres by how alike the distances within them are: a quadratic assignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment

from diptych.arrays import FloatArray, IntArray
from diptych.models.alignment._aligned import SideRows, cross_product

MAX_STEPS = 60
TOLERANCE = 1e-5
SINKHORN_ROUNDS = 20


def matched_centres(
    images: SideRows, texts: SideRows, *, n_centres: int, n_restarts: int, batch_rows: int, random_state: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield matched centres of both sides, row by row, for each of several clusterings of random rows.

    The matching maximises the linear kernel alignment of the centres, with the pairs beside them where there are any.
    """
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(random_state)
    sides = images.all, texts.all
    for _ in range(n_restarts):
        centres = []
        for rows in sides:
            drawn = rows if len(rows) <= batch_rows else rows[rng.choice(len(rows), batch_rows, replace=False)]
            seed = int(rng.integers(2**31))
            found = KMeans(n_centres, n_init=1, max_iter=100, random_state=seed).fit(drawn).cluster_centers_
            centres.append(found.astype(np.float64))
        kernels = _kernels(centres, (images.paired, texts.paired))
        yield centres[0], centres[1][match(*kernels, rng)]


def _kernels(
    centres: list[FloatArray], pairs: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the kernels within both sides, and what the pairs say of each couple of centres."""
    within, to_pairs = [], []
    for own, paired in zip(centres, pairs, strict=True):
        mean = (own.sum(axis=0) + paired.sum(axis=0, dtype=np.float64)) / (len(own) + len(paired))
        within.append((own - mean) @ (own - mean).T)
        to_pairs.append((own - mean) @ (paired - mean).T)
    return within[0], within[1], 2 * to_pairs[0] @ to_pairs[1].T


def match(
    left: FloatArray, right: FloatArray, linear: FloatArray, rng: np.random.Generator, n_starts: int = 30
) -> IntArray:
    """Return the permutation π that maximises Σ left_ij right_π(i)π(j) + Σ linear_iπ(i), as far as search finds it.

    Frank-Wolfe over doubly stochastic matrices (FAQ of Vogelstein et al., 2015) from random starts, then swaps of two.
    The barycentre, SciPy's default start, is a stationary point of centred kernels, so no start is that matrix.
    """
    best: IntArray = np.arange(len(left))
    best_value = -np.inf
    for _ in range(n_starts):
        found = _improved(left, right, linear, _ascended(left, right, linear, _start(len(left), rng)))
        value = float((left * right[np.ix_(found, found)]).sum() + linear[np.arange(len(found)), found].sum())
        if value > best_value:
            best, best_value = found, value
    return best


def _start(size: int, rng: np.random.Generator) -> FloatArray:
    noise = rng.random((size, size))
    for _ in range(SINKHORN_ROUNDS):
        noise /= noise.sum(axis=1, keepdims=True)
        noise /= noise.sum(axis=0, keepdims=True)
    return 0.5 / size + 0.5 * noise


def _ascended(left: FloatArray, right: FloatArray, linear: FloatArray, plan: FloatArray) -> IntArray:
    """Follow the gradient through doubly stochastic matrices, and return the permutation nearest to the end."""
    rows = np.arange(len(left))
    for _ in range(MAX_STEPS):
        gradient = 2 * left @ plan @ right + linear
        step = -plan.copy()
        step[rows, linear_sum_assignment(gradient, maximize=True)[1]] += 1
        # The objective along the step is a·t² + c·t.
        a, c = float(((left @ step) * (step @ right)).sum()), float((gradient * step).sum())
        length = float(a + c > 0) if a >= 0 else min(1.0, max(0.0, -c / (2 * a)))
        plan = plan + length * step
        if length * np.linalg.norm(step) < TOLERANCE * np.sqrt(len(left)):
            break
    return np.asarray(linear_sum_assignment(plan, maximize=True)[1])


def _improved(left: FloatArray, right: FloatArray, linear: FloatArray, found: IntArray) -> IntArray:
    """Swap the partners of the two rows that gain most, until no swap gains."""
    found, rows = found.copy(), np.arange(len(found))
    for _ in range(len(found) ** 2):
        turned = right[np.ix_(found, found)]
        gains = _swap_gains(left, turned) + linear[:, found] + linear[:, found].T
        own = linear[rows, found]
        gains -= own[:, None] + own
        first, second = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[first, second] <= 1e-12 * max(1.0, float(np.abs(left).max() * np.abs(right).max())):
            break
        found[[first, second]] = found[[second, first]]
    return found


def _swap_gains(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return by how much Σ left·right grows where rows r and s of ``right`` change places, for all r and s."""
    # 2 Σ_{k≠r,s} (L_rk − L_sk)(R_sk − R_rk) + (L_rr − L_ss)(R_ss − R_rr), with the terms of k = r, s taken out again.
    products = left @ right.T
    own = np.diag(products)
    whole = products + products.T - own[:, None] - own
    lr, rr = np.diag(left), np.diag(right)
    at_r = (lr[:, None] - left) * (right - rr[:, None])
    taken = at_r + at_r.T
    return np.asarray(2 * (whole - taken) + (lr[:, None] - lr) * (rr - rr[:, None]))


def cross_of(matched: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return the mean cross-product of matched centres."""
    return np.asarray(np.mean([cross_product(*each) / len(each[0]) for each in matched], axis=0))
