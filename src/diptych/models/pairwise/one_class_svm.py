from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.models.base import Grid, Side, Variants
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies
from diptych.models.pairwise._bilinear import BilinearModel
from diptych.models.parameters import Count, Positive, PositiveFraction


@dataclass(kw_only=True, eq=False, repr=False)
class OneClassSVM(BilinearModel):
    """Finds where given pairs lie, without ever looking at pairs that do not match: a baseline.

        min over w, ρ, ξ ≥ 0 of  ½‖w‖² − ρ + (1/νn) Σᵢ ξᵢ    subject to  ⟨w, Φ(aᵢ, bᵢ)⟩ ≥ ρ − ξᵢ.

    Its dual needs products of pair features only. For the cross-product Φ(a, b) = a ⊗ b these are ⟨a, a′⟩⟨b, b′⟩, and
    the score is bilinear, aᵀWb with W = Σ αᵢ aᵢbᵢᵀ. For the concatenation Φ(a, b) = [a b] it is a sum of both sides,
    and every query gets the same answer. Nothing tells it what a mismatch looks like: expect little more than chance.

    Parameters
    ----------
    nu : float
        Upper bound of the share of pairs left outside; Menon et al. (2015) chose 1/16 on Wikipedia.
    features : {"cross", "concat"}
        The pair features Φ.
    kernel : {"linear", "rbf"}
        ``rbf`` is for concatenated features: exp(−γ‖[a b] − [a′ b′]‖²) is a product of one kernel for each side, so
        the score is an inner product of kernel values at the support pairs. The paper does not say which it used.
    gamma : float or None
        γ of ``rbf``; None is one over the total variance of the features of both sides.
    center : bool
        Subtract the training means first.
    max_rows : int
        Larger training sets are sampled down to this, because the quadratic programme holds a square matrix.
    random_state : int
        Of that sample.

    Attributes
    ----------
    W_ : array
        The matrix of the score for cross-product features; ``rank_`` is its numerical rank.

    References
    ----------
    Schölkopf et al., "Support vector method for novelty detection", NIPS 2000. Menon, Surian and Chawla, "Cross-modal
    retrieval: a pairwise classification approach", SDM 2015, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import OneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(60, 3))
    >>> images = texts @ rng.normal(size=(3, 5))
    >>> OneClassSVM(nu=0.5).fit(images, texts).W_.shape
    (5, 3)
    """

    when_to_use: ClassVar[str] = "Never for search: it shows what given pairs alone teach, without any mismatch."
    title: ClassVar[str] = "OC-SVM"
    grid: ClassVar[Grid] = {"nu": [0.0625, 0.5]}
    variants: ClassVar[Variants] = {"OC-SVM concatenation": {"features": "concat"}, "OC-SVM cross-product": {}}

    nu: PositiveFraction = 0.0625
    features: Literal["cross", "concat"] = "cross"
    kernel: Literal["linear", "rbf"] = "linear"
    gamma: Positive | None = None
    center: bool = True
    max_rows: Count = 5000
    random_state: int = 0

    @property
    def W_(self) -> FloatArray:
        """The matrix of the score; concatenated features have none."""
        if self.features != "cross":
            raise InvalidInputError("concatenated features have no matrix W: use features='cross'")
        return super().W_

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        check_varies(images=images, texts=texts)
        self.image_mean_, self.text_mean_ = self._means(images, texts)
        rows = self._sample(len(images))
        image_rows = centre(images[rows], self.image_mean_).astype(np.float64)
        text_rows = centre(texts[rows], self.text_mean_).astype(np.float64)
        if self.kernel == "rbf":
            self._fit_rbf(image_rows, text_rows)
            return
        image_gram, text_gram = image_rows @ image_rows.T, text_rows @ text_rows.T
        if self.features == "cross":
            shares = support_shares(image_gram * text_gram, self.nu)
            weights = (image_rows * shares[:, None]).T @ text_rows
            self._keep(weights, image_rows.astype(images.dtype), text_rows.astype(texts.dtype))
        else:
            shares = support_shares(image_gram + text_gram, self.nu)
            self.image_projection_ = (shares @ image_rows)[:, None]
            self.text_projection_ = (shares @ text_rows)[:, None]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel == "rbf" and self.features == "cross":
            raise InvalidInputError("kernel='rbf' does not factor over the two sides of a cross-product: use 'concat'")

    def _sample(self, n_rows: int) -> slice | IntArray:
        if n_rows <= self.max_rows:
            return slice(None)
        return np.sort(np.random.default_rng(self.random_state).choice(n_rows, size=self.max_rows, replace=False))

    def _fit_rbf(self, images: FloatArray, texts: FloatArray) -> None:
        energy = sum(float((side**2).mean(axis=0).sum()) for side in (images, texts))
        self.gamma_ = 1 / energy if self.gamma is None else float(self.gamma)
        gram = _rbf(images, images, self.gamma_) * _rbf(texts, texts, self.gamma_)
        shares = support_shares(gram, self.nu)
        support = np.flatnonzero(shares)
        self.image_support_, self.text_support_ = images[support], texts[support]
        self.support_roots_ = np.sqrt(shares[support])

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        if self.kernel == "rbf":
            mean, support = self._of_side(side, "mean", "support")
            shares = _rbf(centre(rows, mean).astype(np.float64, copy=False), support, self.gamma_)
            return np.asarray((shares * self.support_roots_).astype(rows.dtype, copy=False))
        points = super()._encode_side(side, rows)
        if self.features == "cross":
            return points
        ones = np.ones_like(points)
        return np.hstack([points, ones] if side == "image" else [ones, points])


def support_shares(gram: FloatArray, nu: float) -> FloatArray:
    """Return α of the dual  min ½ αᵀKα  subject to  0 ≤ αᵢ ≤ 1/(νn), Σ αᵢ = 1."""
    if nu == 1:
        # The bound leaves one solution, which the solver cannot place ρ in.
        return np.full(len(gram), 1 / len(gram))
    # Imported here, so that listing methods does not wait for it.
    from sklearn.svm import OneClassSVM as Solver

    # The solution does not depend on the unit of the kernel, but the solver's tolerance does.
    unit = float(np.trace(gram)) / len(gram)
    solver = Solver(kernel="precomputed", nu=nu, tol=1e-5).fit(gram / (unit or 1.0))
    shares = np.zeros(len(gram))
    shares[solver.support_] = solver.dual_coef_[0]
    return np.asarray(shares / shares.sum())


def _rbf(rows: FloatArray, others: FloatArray, gamma: float) -> FloatArray:
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * rows @ others.T
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0)))
