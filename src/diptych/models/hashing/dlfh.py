"""Discrete latent factor hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import Grid, Need, Side
from diptych.models.hashing.hashing_model import KernelHashingModel
from diptych.models.labels import Targets
from diptych.models.linear import check_varies, project, whitener
from diptych.models.moments import moments
from diptych.models.parameters import Count, Positive

HashFunctions = Literal["ridge", "kernel"]

_BLOCK_NUMBERS = 1 << 19


def latent_factor_codes(
    labels: FloatArray, n_bits: int, *, strength: float, n_columns: int, max_iter: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return codes U of one side and V of the other, −1 and +1, that make the likelihood of shared labels large."""
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
        unexplained = similar - scipy.special.expit(theta)
        for bit in range(codes.shape[1]):
            slope = rate * (unexplained @ other[:, bit]) + curvature * block[:, bit]
            # Few rows turn once codes have settled, and only theirs is computed anew.
            turned = np.flatnonzero((slope >= 0) != (block[:, bit] > 0))
            block[turned, bit] *= -1
            theta[turned] += 2 * rate * np.outer(block[turned, bit], other[:, bit])
            unexplained[turned] = similar[turned] - scipy.special.expit(theta[turned])


@dataclass(kw_only=True, eq=False, repr=False)
class DLFH(KernelHashingModel):
    """Discrete latent factor hashing: binary codes that explain who shares a label, learned without relaxing them.

        max over U, V ∈ {−1, +1}^(n×q) of  Σᵢⱼ Sᵢⱼ Θᵢⱼ − log(1 + exp Θᵢⱼ),   Θ = (λ/q) U Vᵀ

    Sᵢⱼ = 1 where picture i and text j share a label. U and V are improved in turn, bit after bit, each against a few
    rows of the other drawn at random, by a step that never lowers the likelihood of those. Hash functions then predict
    U from pictures and V from texts: ridge regression, or kernel logistic regression on k-means centres, which the
    authors call KDLFH. Time and memory grow with n, never with n².

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    strength : float
        λ; with a larger one the likelihood is content with less agreement of codes. The default is that of public code;
        at 16 bits, 4 does better on hold-outs of the training pairs of Wikipedia. Twice the number of bits is the most
        that is used, because with more hardly a bit would be learned.
    n_columns : int or None
        Rows of the other side that a step looks at; None takes as many as there are bits, as published.
    max_iter : int
        Rounds over both sides.
    hash_functions : {"ridge", "kernel"}
        How features become codes.
    regularization : float or None
        Of the hash functions. For ``ridge`` relative to the mean variance of a feature, 0.1 when None; for ``kernel``
        the weight of wᵀK₀w as in `SePHkm`, 0.01 when None.
    n_centres : int
        Kernel centres for each side.
    logistic_max_iter : int
        Iterations of the logistic regressions.
    random_state : int
        Of the first codes, the rows drawn and the centres.

    References
    ----------
    Jiang and Li, "Discrete latent factor model for cross-modal hashing", IEEE Transactions on Image Processing 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import DLFH
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(120) % 4
    >>> images = np.eye(4)[labels] + 0.3 * rng.normal(size=(120, 4))
    >>> texts = np.eye(4)[labels] @ rng.normal(size=(4, 6)) + 0.3 * rng.normal(size=(120, 6))
    >>> model = DLFH(n_bits=16).fit(images[:80], texts[:80], labels[:80])
    >>> bool(model.score(images[80:], texts[80:], labels[80:]) > 0.8)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from labels in time linear in the pairs, with bits that are never relaxed."
    grid: ClassVar[Grid] = {"strength": [4.0, 8.0], "regularization": [0.1, 1.0]}

    strength: Positive = 8.0
    n_columns: Count | None = None
    max_iter: Count = 30
    hash_functions: HashFunctions = "ridge"
    regularization: Positive | None = None
    n_centres: Count = 500
    logistic_max_iter: Count = 500

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        check_varies(images=images, texts=texts)
        rows = targets.labelled
        if len(rows) < len(images):
            images, texts = images[rows], texts[rows]
        image_signs, text_signs = latent_factor_codes(
            targets.indicator[rows],
            self.n_bits,
            # From λ = 4q on the curvature outweighs every gradient, and no bit of the first codes would ever turn.
            strength=min(self.strength, 2 * self.n_bits),
            n_columns=self.n_bits if self.n_columns is None else self.n_columns,
            max_iter=self.max_iter,
            seed=self.random_state,
        )
        if self.hash_functions == "kernel":
            share = 0.01 if self.regularization is None else self.regularization
            self._fit_kernels("image", images, image_signs, share)
            self._fit_kernels("text", texts, text_signs, share)
        else:
            self.image_mean_, self.image_weights_ = self._ridge(images, image_signs)
            self.text_mean_, self.text_weights_ = self._ridge(texts, text_signs)

    def _ridge(self, rows: FloatArray, signs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and projection of the ridge regression of ``signs`` on centred rows."""
        sums = moments(rows, signs)
        share = 0.1 if self.regularization is None else self.regularization
        directions = whitener(sums.image, share * float(np.trace(sums.image)) / len(sums.image), sums.precision)
        return sums.image_mean, np.asarray(directions @ (directions.T @ sums.cross))

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        if self.hash_functions == "kernel":
            return super()._decide(side, rows)
        return project(rows, *self._of_side(side, "mean", "weights"))
