"""One side predicted from the other: ridge regression both ways, and partial least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, unit_rows
from diptych.models.base import FromTask, Grid, LinearProjectionModel, Variants
from diptych.models.correlation.cca import RidgedModel
from diptych.models.linear import centre, fix_signs, project, singular_noise, whitener
from diptych.models.moments import MomentModel, Moments
from diptych.models.parameters import Count, Ridge, check_components
from diptych.space import Space

# A component whose image scores carry less than this share of the variance is rounding.
_LEAST_SHARE = 1e-12
# From this width on, Lanczos iterations find one eigenvector sooner than a decomposition does.
_LANCZOS_WIDTH = 350
# A Gram matrix that was changed in place keeps the digits of values down to this share of its first.
_TRUSTED_SHARE = 1 / 16


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(RidgedModel):
    """Ridge regression both ways: predict the other side's features, then compare by cosine.

        W = (AᵀA + λI)⁻¹AᵀB,    V = (BᵀB + λI)⁻¹BᵀA

    An image query is mapped by W and compared with the texts, a text query by V and compared with the images. A point
    therefore holds both halves, and the model's `Space` picks the one that belongs to the direction of the query.

    Parameters
    ----------
    target : {"gallery", "texts", "images"}
        ``gallery`` maps every query into the features of what it searches, as Menon et al. (2015) do. ``texts`` or
        ``images`` use one of the two regressions for both directions, which gives one ordinary space.
    regularization : float or "auto"
        The ridge λ relative to the mean of the diagonal it is added to; ``"auto"`` chooses one for each direction by
        generalised cross-validation over pictures, as in `CCA`.
    center : bool
        Regress and compare deviations from the training means. Without it the mean that all items share dominates every
        cosine; that is what the published row shows, and it costs a fifth of its score.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 7.2.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(100, 4))
    >>> images = texts @ rng.normal(size=(4, 6))
    >>> model = LinearRegression().fit(images, texts)
    >>> model.encode_images(images).shape
    (100, 10)
    >>> round(model.score(images, texts), 2)
    1.0
    """

    when_to_use: ClassVar[str] = "Pairs without labels, when one side's features are already a good space for search."
    title: ClassVar[str] = "linear regression"
    grid: ClassVar[Grid] = {"regularization": [1e-3, 0.1, 1.0]}
    variants: ClassVar[Variants] = {"linear regression": {"regularization": 1e-4}}

    target: Literal["gallery", "texts", "images"] = "gallery"
    regularization: Ridge = "auto"
    center: bool = True

    @property
    def space(self) -> Space:
        """Cosine; with ``target="gallery"`` of the half that belongs to the direction."""
        if self.target == "gallery":
            return Space("cosine", split=getattr(self, "n_text_features_", None))
        return Space("cosine")

    def _ridges(self, sums: Moments, widths: tuple[int, int] | None = None) -> tuple[float, float]:
        return super()._ridges(sums if self.center else sums.about_origin(), widths)

    def _fit_ridged(self, sums: Moments, image_ridge: float, text_ridge: float) -> None:
        sums = sums if self.center else sums.about_origin()
        image, text, cross = (moment / sums.n_rows for moment in (sums.image, sums.text, sums.cross))
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_to_text_ = _solve(image, cross, image_ridge, sums.precision)
        self.text_to_image_ = _solve(text, cross.T, text_ridge, sums.precision)

    def _encode_images(self, images: FloatArray) -> FloatArray:
        as_text = project(images, self.image_mean_, self.image_to_text_)
        return self._join(as_text, centre(images, self.image_mean_))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        as_image = project(texts, self.text_mean_, self.text_to_image_)
        return self._join(centre(texts, self.text_mean_), as_image)

    def _join(self, as_text: FloatArray, as_image: FloatArray) -> FloatArray:
        if self.target == "gallery":
            return np.hstack([unit_rows(as_text), unit_rows(as_image)])
        return as_text if self.target == "texts" else as_image


def _solve(moment: FloatArray, cross: FloatArray, ridge: float, precision: float) -> FloatArray:
    directions = whitener(moment, ridge, precision)
    return np.asarray(directions @ (directions.T @ cross))


@dataclass(kw_only=True, eq=False, repr=False)
class PLS(MomentModel, LinearProjectionModel):
    """Partial least squares: one direction of largest covariance after another, each explained away before the next.

        w_i = argmax over ‖w‖ = 1 of ‖B_iᵀ A_i w‖,    t_i = A w_i
        A_{i+1} = A_i − t_i p_iᵀ,    B_{i+1} = B_i − t_i z_iᵀ

    where p_i and z_i are the least squares loadings of the image scores t_i. Only the moments AᵀA and AᵀB are deflated,
    never the data, so nothing larger than d × d is held. A picture's point is its scores; a text's point is what scores
    would explain it best, pinv(Z) b, or its plain projection Zᵀb.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None goes on until no covariance is left.
    text_points : {"projection", "least_squares"}
        How a text gets its point. The authors' function prescribes least squares; a wrapper in their package projects.
        Least squares blow up what loadings hardly reach: on Wikipedia's histograms and topics their MAP is 0.16, that
        of projections 0.24.
    metric : str
        Name of the `Space`.

    References
    ----------
    Sharma and Jacobs, "Bypassing synthesis: PLS for face recognition with pose, low-resolution and sketch", CVPR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import PLS
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(100, 4))
    >>> images = texts @ rng.normal(size=(4, 6)) + 0.1 * rng.normal(size=(100, 6))
    >>> scores = PLS(n_components=3).fit(images, texts).encode_images(images)
    >>> bool(np.abs(np.corrcoef(scores.T) - np.eye(3)).max() < 1e-8)
    True
    """

    when_to_use: ClassVar[str] = "Pairs without labels when features outnumber pairs; needs no ridge to be stable."
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS}
    variants: ClassVar[Variants] = {"PLS": {"text_points": "least_squares"}}

    n_components: Count | None = 10
    text_points: Literal["least_squares", "projection"] = "projection"
    metric: str = "cosine"

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        wanted = check_components(self.n_components, min(sums.cross.shape))
        weights, loadings = deflate(sums.image, sums.cross, wanted, sums.precision)
        weights, loadings = fix_signs(weights, loadings)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_ = weights
        # Texts that lie in a subspace have loadings there: what stands out of it is rounding.
        noise = singular_noise(max(sums.cross.shape), sums.precision, sums.offset)
        self.text_projection_ = np.linalg.pinv(loadings, noise).T if self.text_points == "least_squares" else loadings


def deflate(image: FloatArray, cross: FloatArray, n_components: int, precision: float) -> tuple[FloatArray, FloatArray]:
    """Return image weights for undeflated data and text loadings, from AᵀA and AᵀB alone.

    AᵀA is never deflated: scores of weights that are orthogonal to the earlier ones, in AᵀA, are what deflated data
    would give. With R for the weights and P for the image loadings, that is x − R Pᵀx.
    """
    covariance = ShrinkingMatrix(cross)
    least_variance = max(_LEAST_SHARE, precision**2) * float(np.trace(image))
    least_covariance = max(1e-10, 8 * precision) * float(np.linalg.norm(cross))
    weights, loadings = (np.empty((len(image), n_components), order="F") for _ in range(2))
    text_loadings = np.empty((cross.shape[1], n_components), order="F")
    found = 0
    while found < n_components:
        weight, strength = covariance.leading()
        if strength <= least_covariance:
            break
        for _ in range(2):  # Once leaves what rounding makes of the difference.
            weight = weight - weights[:, :found] @ (weight @ loadings[:, :found])
        length = float(np.linalg.norm(weight))
        if length == 0:
            break
        weight /= length
        spread = image @ weight
        variance = float(weight @ spread)
        if variance <= least_variance:
            break
        explained = covariance.products(weight)
        weights[:, found], loadings[:, found], text_loadings[:, found] = weight, spread / variance, explained / variance
        covariance.subtract(spread / variance, explained)
        found += 1
    return weights[:, :found], text_loadings[:, :found]


class ShrinkingMatrix:
    """A matrix that loses one matrix of rank one after another, and its leading singular vector at any time.

    The vector is an eigenvector of the Gram matrix of the narrower side, which is changed along with the matrix: by
    rank two, where multiplying anew would take as long as everything else. What is small beside the first values has
    lost digits to them, so that the product is made anew whenever values have fallen far.
    """

    _gram: FloatArray

    def __init__(self, matrix: FloatArray) -> None:
        self._is_wide = matrix.shape[0] < matrix.shape[1]
        # The routines of BLAS change matrices in Fortran's order in place.
        self._tall = np.array(matrix.T if self._is_wide else matrix, dtype=np.float64, order="F")
        self._start = np.random.default_rng(0).normal(size=self._tall.shape[1])
        self._renew()

    def leading(self) -> tuple[FloatArray, float]:
        """Return a vector along the leading left singular vector, and the singular value."""
        square, vector = self._top()
        if square < _TRUSTED_SHARE * self._first:
            self._renew()
            square, vector = self._top()
        return vector if self._is_wide else self._tall @ vector, float(np.sqrt(max(square, 0.0)))

    def products(self, left: FloatArray) -> FloatArray:
        """Return the products of all columns with ``left``."""
        return np.asarray(self._tall @ left if self._is_wide else left @ self._tall)

    def subtract(self, left: FloatArray, right: FloatArray) -> None:
        """Subtract the outer product of two vectors."""
        long, short = (right, left) if self._is_wide else (left, right)
        # (T − lsᵀ)ᵀ(T − lsᵀ) = TᵀT − hsᵀ − shᵀ
        half = long @ self._tall - float(long @ long) / 2 * short
        self._gram = scipy.linalg.blas.dsyr2(-1.0, half, short, a=self._gram, overwrite_a=1)
        self._tall = scipy.linalg.blas.dger(-1.0, long, short, a=self._tall, overwrite_a=1)

    def _renew(self) -> None:
        self._gram = np.asfortranarray(self._tall.T @ self._tall)
        self._first = 0.0

    def _top(self) -> tuple[float, FloatArray]:
        """Return the largest eigenvalue and its vector; only the upper half of the Gram matrix is kept up."""
        size = len(self._gram)
        # Iterations have nowhere to start in a matrix of zeros, which exact data leave.
        if size < _LANCZOS_WIDTH or not self._gram.any():
            values, vectors = scipy.linalg.eigh(self._gram, lower=False, subset_by_index=[size - 1, size - 1])
        else:
            operator = scipy.sparse.linalg.LinearOperator(
                (size, size), matvec=lambda vector: scipy.linalg.blas.dsymv(1.0, self._gram, vector), dtype=np.float64
            )
            values, vectors = scipy.sparse.linalg.eigsh(operator, 1, which="LA", v0=self._start, tol=0)
        self._first = max(self._first, float(values[0]))
        return float(values[0]), vectors[:, 0]
