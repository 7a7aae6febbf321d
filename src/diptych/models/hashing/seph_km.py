"""Semantics-preserving hashing with k-means centres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.models.base import Grid, Need
from diptych.models.hashing.hashing_model import KernelHashingModel
from diptych.models.labels import Targets
from diptych.models.linear import check_varies
from diptych.models.parameters import Count, NonNegative, Positive

Affinity = Literal["streamed", "collapsed", "auto"]

_BLOCK_BYTES = 1 << 21
_MAX_SWEEPS, _SMALLEST_GAIN = 50, 1e-12
_START, _MOMENTUM = 1e-4, 0.5


class HammingAffinity:
    """Ψ(H) = KL(P ‖ Q) + α/(nq) Σ (|hᵢₖ| − 1)²  of relaxed codes H, and its gradient, without an n×n matrix.

    pᵢⱼ is the cosine of the label vectors of two different items, qᵢⱼ = wᵢⱼ/Σw with wᵢⱼ = 1/(1 + ¼‖hᵢ − hⱼ‖²), where
    ¼‖hᵢ − hⱼ‖² is the Hamming distance of ±1 codes; both sum to one over ordered pairs. Passes go over blocks of rows.

    A row may stand for ``counts`` items that have the same labels and the same code. Its gradient is that of one of
    them, so that descending from tied codes, with or without repeating the rows, is the same path.
    """

    def __init__(self, labels: FloatArray, counts: FloatArray, *, quantization: float) -> None:
        self.labels = labels / np.linalg.norm(labels, axis=1, keepdims=True)
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
            nearness = _hamming_similarities(codes, squares, rows)
            mismatch -= float(counts[rows] @ (np.log(nearness) * affinities) @ counts)
            affinities *= nearness
            affinities *= counts
            attraction[rows] = _attraction(affinities, codes, rows)
            normaliser += float(counts[rows] @ (nearness @ counts))
            nearness *= nearness
            nearness *= counts
            repulsion[rows] = _attraction(nearness, codes, rows)
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
            total += float(self.counts[rows] @ (_hamming_similarities(codes, squares, rows) @ self.counts))
        return total - float(self.counts.sum())

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        for rows in row_blocks(len(self.labels), _BLOCK_BYTES // (8 * len(self.labels))):
            yield rows, self.labels[rows] @ self.labels.T

    def _sum_p_log_p(self) -> float:
        total = -float(self.counts.sum()) * float(scipy.special.xlogy(1 / self.total, 1 / self.total))
        for rows, affinities in self._blocks():
            shares = np.maximum(affinities, 0) / self.total
            total += float(self.counts[rows] @ scipy.special.xlogy(shares, shares) @ self.counts)
        return total


def _hamming_similarities(codes: FloatArray, squares: FloatArray, rows: slice) -> FloatArray:
    """Return w between the rows of a block and all rows, 1 for a row and itself; blocks are large, so in place."""
    nearness = codes[rows] @ codes.T
    nearness *= -0.5
    nearness += squares[rows, None] / 4 + 1
    nearness += squares / 4
    np.maximum(nearness, 1, out=nearness)
    nearness[np.arange(len(nearness)), np.arange(rows.start, rows.stop)] = 1
    return np.reciprocal(nearness, out=nearness)


def _attraction(weights: FloatArray, codes: FloatArray, rows: slice) -> FloatArray:
    """Σⱼ wᵢⱼ (hᵢ − hⱼ) for the rows of a block."""
    return np.asarray(weights.sum(axis=1, keepdims=True) * codes[rows] - weights @ codes)


def codes_from_affinity(affinity: HammingAffinity, n_bits: int, *, step: float, max_iter: int, seed: int) -> FloatArray:
    """Return codes of −1 and +1, one row per row of ``affinity``, that descend from small random numbers."""
    start = _START * np.random.default_rng(seed).normal(size=(len(affinity.counts), n_bits))
    return np.where(descend(affinity, start, step=step, max_iter=max_iter) >= 0, 1.0, -1.0)


def flip_bits(affinity: HammingAffinity, signs: FloatArray) -> FloatArray:
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


@dataclass(kw_only=True, eq=False, repr=False)
class SePHkm(KernelHashingModel):
    """Semantics-preserving hashing: codes of which near ones share labels, predicted by kernel logistic regression.

        1.  min over H of  KL(P ‖ Q) + α/(nq) Σ (|hᵢₖ| − 1)²,   codes sgn(H)
        2.  for each side and bit,  min over w of  Σᵢ log(1 + exp(−hᵢ φ(xᵢ)ᵀw)) + c wᵀK₀w

    P is a distribution over pairs of training items, in proportion to the cosine of their labels; Q one in proportion
    to 1/(1 + Hamming distance), relaxed to real numbers. φ(x) are Gaussian kernel values with k-means centres, K₀ those
    between the centres. A bit of an item alone is the sign of φ(x)ᵀw. A pair gets a unified code: the two sides are
    taken as independent given the bit, p(b | x, y) ∝ p(b | x) p(b | y)/p(b), where p(b) is the bit's frequency in
    training.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    n_centres : int
        Kernel centres for each side; where there are fewer different rows, all of them.
    quantization : float
        α, how strongly the relaxed codes are drawn to ±1.
    regularization : float
        c of the logistic regressions.
    affinity : {"auto", "streamed", "collapsed"}
        ``streamed`` learns a code for every pair, in O(n²q) time and little memory for each step. ``collapsed`` learns
        one for every distinct set of labels, which is where the other arrives if it is given time, since P sees nothing
        but labels. ``auto`` collapses where this at least halves the number of codes.
    refine : bool
        After the descent, turn single bits as long as this lowers the objective of the codes themselves. This is ours,
        and meant for collapsed codes: relaxed codes can be rotated without much change of the objective, signs cannot,
        so that the signs of a descent are little better than chance makes them. On hold-outs of the training pairs of
        Wikipedia it adds 0.02 to 0.03 to MAP in both directions at 16 bits.
    max_pairs : int or None
        Train on at most so many pairs, drawn at random; None trains on all. The default is ours.
    step : float
        Step of the descent in units of 1/n. The 500 of public code is 0.23 in these units for the 2,173 training
        pairs of Wikipedia; as a fixed number it is too large for small sets and too small for large ones.
    max_iter : int
        Steps of the descent.
    logistic_max_iter : int
        Iterations of the logistic regressions.
    random_state : int
        Of the start, the centres and the choice of pairs.

    Attributes
    ----------
    prior_log_odds_ : array
        log p(b = 1)/p(b = −1) of each bit in the training codes.

    References
    ----------
    Lin, Ding, Hu and Wang, "Semantics-preserving hashing for cross-view retrieval", CVPR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SePHkm
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(120) % 4
    >>> images = np.eye(4)[labels] + 0.3 * rng.normal(size=(120, 4))
    >>> texts = np.eye(4)[labels] @ rng.normal(size=(4, 6)) + 0.3 * rng.normal(size=(120, 6))
    >>> model = SePHkm(n_bits=16).fit(images[:80], texts[:80], labels[:80])
    >>> model.encode_pairs(images[80:], texts[80:]).shape
    (40, 2)
    >>> bool(model.score(images[80:], texts[80:], labels[80:]) > 0.8)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from labels with non-linear hash functions; strong where classes are known."
    title: ClassVar[str] = "SePH-km"
    grid: ClassVar[Grid] = {"regularization": [0.001, 0.01]}
    command_name: ClassVar[str] = "seph-km"

    n_centres: Count = 500
    quantization: NonNegative = 0.01
    regularization: Positive = 0.01
    affinity: Affinity = "auto"
    refine: bool = False
    max_pairs: Count | None = 10_000
    step: Positive = 0.25
    max_iter: Count = 100
    logistic_max_iter: Count = 500

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        check_varies(images=images, texts=texts)
        rows = targets.labelled
        if self.max_pairs is not None and len(rows) > self.max_pairs:
            rows = np.sort(np.random.default_rng(self.random_state).choice(rows, self.max_pairs, replace=False))
        if len(rows) < len(images):
            images, texts = images[rows], texts[rows]
        signs = self._training_signs(targets.indicator[rows])
        positive = (signs > 0).mean(axis=0)
        # A bit that is constant in training says nothing about its prior.
        varied = (positive > 0) & (positive < 1)
        self.prior_log_odds_ = np.where(varied, np.log(np.where(varied, positive / (1 - positive), 1.0)), 0.0)
        self._fit_kernels("image", images, signs, self.regularization)
        self._fit_kernels("text", texts, signs, self.regularization)

    def _training_signs(self, indicator: FloatArray) -> FloatArray:
        """Return the codes of the training pairs as −1 and +1."""
        kinds, kind_of, counts = np.unique(indicator, axis=0, return_inverse=True, return_counts=True)
        collapse = self.affinity == "collapsed" or (self.affinity == "auto" and 2 * len(kinds) <= len(indicator))
        labels, sizes = (kinds, counts.astype(np.float64)) if collapse else (indicator, np.ones(len(indicator)))
        affinities = HammingAffinity(labels, sizes, quantization=self.quantization)
        codes = codes_from_affinity(
            affinities, self.n_bits, step=self.step, max_iter=self.max_iter, seed=self.random_state
        )
        if self.refine:
            codes = flip_bits(affinities, codes)
        return codes[kind_of] if collapse else codes

    def _decide_pairs(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        # The outputs are log-odds, in which p(b | x) p(b | y)/p(b) is a sum.
        return np.asarray(self._decide("image", images) + self._decide("text", texts) - self.prior_log_odds_)
