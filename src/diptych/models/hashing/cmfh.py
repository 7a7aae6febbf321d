"""Collective matrix factorisation hashing, and its form in which labels are the factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import Grid, Need
from diptych.models.hashing._solvers import CollectiveFactorisation, ScaledViews
from diptych.models.hashing.hashing_model import LinearHashingModel
from diptych.models.labels import Targets
from diptych.models.linear import centre, project
from diptych.models.moments import LabelView, MomentModel, Moments, moments
from diptych.models.parameters import Count, Fraction, NonNegative, Positive


@dataclass(kw_only=True, eq=False, repr=False)
class CMFH(LinearHashingModel):
    """Collective matrix factorisation hashing: one latent vector explains both sides and is predicted from each.

        min  λ‖X − VU₁‖² + (1−λ)‖Y − VU₂‖² + μ(‖V − XP₁‖² + ‖V − YP₂‖²) + γ(‖U₁‖² + ‖U₂‖² + ‖P₁‖² + ‖P₂‖² + ‖V‖²)

    in turn over U, V and P; each step is a ridge regression, and the objective never rises. V is a linear function of
    the two views, so that after one pass over the data every step works with their moments alone and its cost does not
    depend on the number of pairs. Both views are centred and scaled to rows of mean square length one, without which
    λ would weigh units. The objective is that of the mean row, so that γ means the same at any number of pairs.

    The unified code of a pair is the sign of its V.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    balance : float
        λ: the weight of the pictures' reconstruction; the texts have 1 − λ.
    mu : float
        How much V must be predictable from each side.
    regularization : float
        γ, against the mean row; the authors' μ = 100 and γ = 0.01 stand against sums over all rows, so that their γ
        grows weaker with the data. These defaults are ours.
    max_iter, tol : int, float
        Stop after so many rounds, or when the objective falls by less than this share.
    legacy_scaling : bool
        Repeat a slip of operator precedence in the authors' program, which divides P by μ² where V is computed and so
        loses nearly all coupling; only to compare with old numbers.
    random_state : int
        Of the first V; results depend on it, so report several.

    Attributes
    ----------
    objectives_ : array
        The objective before the first and after each round.

    References
    ----------
    Ding, Guo and Zhou, "Collective matrix factorization hashing for multimodal data", CVPR 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CMFH
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(300, 6))
    >>> images, texts = meaning @ rng.normal(size=(6, 12)), meaning @ rng.normal(size=(6, 9))
    >>> model = CMFH(n_bits=32).fit(images, texts)
    >>> bool(model.score(images, texts) > 0.8)
    True
    >>> bool((np.diff(model.objectives_) <= 0).all())
    True
    """

    when_to_use: ClassVar[str] = "Codes from pairs without labels, when galleries have both sides (unified codes)."
    grid: ClassVar[Grid] = {"mu": [1.0, 10.0]}

    balance: Fraction = 0.5
    mu: Positive = 10.0
    regularization: Positive = 0.001
    max_iter: Count = 100
    tol: NonNegative = 1e-5
    legacy_scaling: bool = False

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        views = ScaledViews.of(moments(images, texts))
        steps = CollectiveFactorisation(views, self.balance, self.mu, self.regularization)

        def latent_of(attraction: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            products = views.joint @ attraction
            return attraction, attraction.T @ products, products

        latent, products, self.objectives_ = steps.alternate(
            *self._first_latent(images, texts, views),
            latent_of,
            coupling=1 / self.mu if self.legacy_scaling else self.mu,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.image_mean_, self.text_mean_ = views.sums.image_mean, views.sums.text_mean
        self.image_projection_, self.text_projection_ = views.unscaled(steps.predictors(products))
        self.image_part_, self.text_part_ = views.unscaled(latent)

    def _first_latent(self, images: FloatArray, texts: FloatArray, views: ScaledViews) -> tuple[FloatArray, FloatArray]:
        """Return VᵀV and [X, Y]ᵀV, per row, of a random V; the only pass over the data besides the moments."""
        rng = np.random.default_rng(self.random_state)
        products = np.zeros((len(views.joint), self.n_bits))
        square = np.zeros((self.n_bits, self.n_bits))
        for rows in row_blocks(len(images)):
            latent = rng.random((rows.stop - rows.start, self.n_bits)) - 0.5
            image = centre(images[rows], views.sums.image_mean) / views.image_scale
            text = centre(texts[rows], views.sums.text_mean) / views.text_scale
            products += np.hstack([image, text]).T @ latent
            square += latent.T @ latent
        return square / len(images), products / len(images)

    def _decide_pairs(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        image = project(images, self.image_mean_, self.image_part_)
        return np.asarray(image + project(texts, self.text_mean_, self.text_part_))


@dataclass(kw_only=True, eq=False, repr=False)
class LCMFH(MomentModel, LinearHashingModel):
    """Label-consistent matrix factorisation hashing: pairs with the same labels share one latent vector.

        min  λ‖X − LZU₁‖² + (1−λ)‖Y − LZU₂‖² + μ(‖LZ − XP₁‖² + ‖LZ − YP₂‖²) + γ(‖U₁‖² + ‖U₂‖² + ‖P₁‖² + ‖P₂‖² + ‖LZ‖²)

    `CMFH` whose latent V is LZ: one row of Z per class, L the labels with rows of unit length. After the moments XᵀX,
    YᵀY, LᵀX, LᵀY and LᵀL every round is independent of the number of pairs, which makes it the cheapest strong
    supervised method on large data. Both views are centred and scaled to rows of mean square length one.

    The authors give the database codes from its true labels and shift queries by the mean of the test set. Neither is
    available when searching: here both sides are projected, with the means of the training rows.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    balance : float
        λ: the weight of the pictures' reconstruction; the texts have 1 − λ.
    mu : float
        How much the latent vectors must be predictable from each side.
    regularization : float
        γ, against the mean row; the authors' 0.001 stands against sums over all rows, so that it grows weaker with
        the data. This default and that of μ are ours.
    max_iter, tol : int, float
        Stop after so many rounds, or when the objective falls by less than this share.
    random_state : int
        Of the first Z.

    Attributes
    ----------
    objectives_ : array
        The objective after each round.
    class_codes_ : array
        Z: the latent vector of each class.

    References
    ----------
    Wang, Gao, Wang and He, "Label consistent matrix factorization hashing for large-scale cross-modal similarity
    search", TPAMI 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LCMFH
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(4, size=300)
    >>> images, texts = rng.normal(size=(4, 20))[labels], rng.normal(size=(4, 15))[labels]
    >>> images, texts = images + 0.1 * rng.normal(size=images.shape), texts + 0.1 * rng.normal(size=texts.shape)
    >>> model = LCMFH(n_bits=16).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.95)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from labels on very large data: rounds are free once moments are summed."
    grid: ClassVar[Grid] = {"mu": [0.1, 1.0]}
    label_view: ClassVar[LabelView] = "unit"

    balance: Fraction = 0.5
    mu: Positive = 1.0
    regularization: Positive = 0.001
    max_iter: Count = 20
    tol: NonNegative = 1e-6

    def _fit_moments(self, sums: Moments) -> None:
        views, labels = ScaledViews.of(sums), sums.known_labels
        steps = CollectiveFactorisation(views, self.balance, self.mu, self.regularization)
        # LᵀL and [X, Y]ᵀL of the mean row.
        gram = labels.gram / sums.n_rows
        label_products = np.vstack([labels.image.T / views.image_scale, labels.text.T / views.text_scale])
        label_products /= sums.n_rows
        inverse = np.linalg.pinv(gram, hermitian=True)
        codes = np.random.default_rng(self.random_state).normal(size=(len(gram), self.n_bits))

        def latent_of(attraction: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            codes = inverse @ label_products.T @ attraction
            return codes, codes.T @ gram @ codes, label_products @ codes

        self.class_codes_, products, self.objectives_ = steps.alternate(
            codes.T @ gram @ codes,
            label_products @ codes,
            latent_of,
            coupling=self.mu,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = views.unscaled(steps.predictors(products))
