"""The divergence between who shares labels and who is near in Hamming space, and codes that make it small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import xlogy

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError

_BLOCK_BYTES = 1 << 21
_MAX_SWEEPS = 50
_SMALLEST_GAIN = 1e-12
_MOMENTUM = 0.5
_START = 1e-4


class HammingAffinity:
    """Ψ(H) = KL(P ‖ Q) + α/(nq) Σ (|hᵢₖ| − 1)²  of relaxed codes H, and its gradient, without an n×n matrix.

    pᵢⱼ is the cosine of the label vectors of two different items, qᵢⱼ = wᵢⱼ/Σw with wᵢⱼ = 1/(1 + ¼‖hᵢ − hⱼ‖²), where
    ¼‖hᵢ − hⱼ‖² is the Hamming distance of ±1 codes; both sum to one over ordered pairs. Passes go over blocks of rows.

    A row may stand for ``counts`` items that have the same labels and the same code. Its gradient is that of one of
    them, so that descending from tied codes, with or without repeating the rows, is the same path.
    """

    def __init__(self, labels: FloatArray, counts: FloatArray, *, quantization: float) -> None:
        lengths = np.linalg.norm(labels, axis=1, keepdims=True)
        self.labels = labels / lengths
        self.counts = counts
        self.quantization = quantization
        # Σᵢ≠ⱼ cos(lᵢ, lⱼ) = ‖Σᵢ lᵢ‖² − n for unit rows.
        self.total = float(((self.counts @ self.labels) ** 2).sum() - self.counts.sum())
        if self.total <= 1e-9 * self.counts.sum():
            raise InvalidInputError("no two pairs share a label, so that there is no affinity to learn from")
        self._negative_entropy = self._sum_p_log_p()

    def __call__(self, codes: FloatArray) -> tuple[float, FloatArray]:
        """Return Ψ and, for each row, the gradient of one of its items."""
        counts, squares = self.counts, (codes**2).sum(axis=1)
        attraction, repulsion = np.empty_like(codes), np.empty_like(codes)
        normaliser, mismatch = -float(counts.sum()), 0.0
        for rows, affinities in self._blocks():
            nearness = _nearness(codes, squares, rows)
            mismatch -= float(counts[rows] @ (np.log(nearness) * affinities) @ counts)
            affinities *= nearness
            affinities *= counts
            attraction[rows] = _pull(affinities, codes, rows)
            normaliser += float(counts[rows] @ (nearness @ counts))
            nearness *= nearness
            nearness *= counts
            repulsion[rows] = _pull(nearness, codes, rows)
        value = self._negative_entropy + mismatch / self.total + float(np.log(normaliser))
        gap = np.abs(codes) - 1
        share = self.quantization / (counts.sum() * codes.shape[1])
        value += share * float(counts @ (gap**2).sum(axis=1))
        gradient = attraction / self.total - repulsion / normaliser + 2 * share * gap * np.sign(codes)
        return value, np.asarray(gradient)

    def normaliser(self, codes: FloatArray) -> float:
        """Return Σw over ordered pairs of different items."""
        squares, total = (codes**2).sum(axis=1), 0.0
        for rows in row_blocks(len(codes), _BLOCK_BYTES // (8 * len(codes))):
            total += float(self.counts[rows] @ (_nearness(codes, squares, rows) @ self.counts))
        return total - float(self.counts.sum())

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        for rows in row_blocks(len(self.labels), _BLOCK_BYTES // (8 * len(self.labels))):
            yield rows, self.labels[rows] @ self.labels.T

    def _sum_p_log_p(self) -> float:
        total = -float(self.counts.sum()) * float(xlogy(1 / self.total, 1 / self.total))
        for rows, affinities in self._blocks():
            shares = np.maximum(affinities, 0) / self.total
            total += float(self.counts[rows] @ xlogy(shares, shares) @ self.counts)
        return total


def _nearness(codes: FloatArray, squares: FloatArray, rows: slice) -> FloatArray:
    """Return w between the rows of a block and all rows, 1 for a row and itself; blocks are large, so in place."""
    nearness = codes[rows] @ codes.T
    nearness *= -0.5
    nearness += squares[rows, None] / 4 + 1
    nearness += squares / 4
    np.maximum(nearness, 1, out=nearness)
    nearness[np.arange(len(nearness)), np.arange(rows.start, rows.stop)] = 1
    return np.reciprocal(nearness, out=nearness)


def _pull(weights: FloatArray, codes: FloatArray, rows: slice) -> FloatArray:
    """Σⱼ wᵢⱼ (hᵢ − hⱼ) for the rows of a block."""
    return np.asarray(weights.sum(axis=1, keepdims=True) * codes[rows] - weights @ codes)


def affine_codes(affinity: HammingAffinity, n_bits: int, *, step: float, max_iter: int, seed: int) -> FloatArray:
    """Return codes of −1 and +1, one row per row of ``affinity``, that descend from small random numbers."""
    start = _START * np.random.default_rng(seed).normal(size=(len(affinity.counts), n_bits))
    return np.where(descend(affinity, start, step=step, max_iter=max_iter) >= 0, 1.0, -1.0)


def turn_bits(affinity: HammingAffinity, signs: FloatArray) -> FloatArray:
    """Return ``signs`` after turning, row by row, the bit that lowers Ψ most, until no row has one."""
    signs = signs.copy()
    normaliser = affinity.normaliser(signs)
    for _ in range(_MAX_SWEEPS):
        settled = True
        for row in range(len(signs)):
            changes, normalisers = _changes(affinity, signs, row, normaliser)
            bit = int(changes.argmin())
            if changes[bit] < -_SMALLEST_GAIN:
                signs[row, bit] *= -1
                normaliser, settled = float(normalisers[bit]), False
        if settled:
            break
    return signs


def _changes(
    affinity: HammingAffinity, signs: FloatArray, row: int, normaliser: float
) -> tuple[FloatArray, FloatArray]:
    """Return, for each bit of ``row``, how much turning it changes Ψ, and Σw afterwards."""
    n_bits = signs.shape[1]
    # Distances of codes are whole numbers, and one bit changes each of them by one: nearness comes from a table.
    nearness = 1 / (1 + np.arange(n_bits + 1.0))
    logarithms = np.log(nearness)
    weights = affinity.counts[row] * affinity.counts
    weights[row] = 0
    affinities = affinity.labels @ affinity.labels[row] * weights
    agreement = signs * signs[row]
    distances = ((n_bits - agreement.sum(axis=1)) / 2).astype(np.intp)
    moved = distances[:, None] + agreement.astype(np.intp)
    normalisers = normaliser + 2 * (weights @ nearness[moved] - weights @ nearness[distances])
    mismatch = 2 * (affinities @ logarithms[moved] - affinities @ logarithms[distances]) / affinity.total
    return np.log(normalisers / normaliser) - mismatch, normalisers


def descend(affinity: HammingAffinity, start: FloatArray, *, step: float, max_iter: int) -> FloatArray:
    """Return the best of ``max_iter`` steps by gradients with momentum and a gain of its own for every number.

    ``step`` is in units of 1/n, the size of one item's gradient, so that it means the same for every number of items. A
    gain grows while its gradient keeps its sign and shrinks when it turns. Columns are kept at mean zero, which fixes
    what the objective leaves open and gives every bit both signs.
    """
    rate = step * affinity.counts.sum()
    codes, increment, gains = start, np.zeros_like(start), np.ones_like(start)
    value, gradient = affinity(codes)
    best, lowest = codes, value
    for _ in range(max_iter):
        gains = np.where(gradient * increment < 0, gains + 0.2, np.maximum(0.8 * gains, 0.01))
        increment = _MOMENTUM * increment - rate * gains * gradient
        codes = codes + increment
        codes = codes - affinity.counts @ codes / affinity.counts.sum()
        value, gradient = affinity(codes)
        if value < lowest:
            best, lowest = codes, value
    return best
