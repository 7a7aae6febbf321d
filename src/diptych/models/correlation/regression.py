"""One side predicted from the other: ridge regression both ways, and partial least squares."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.models.base import (
    FromTask,
    Grid,
    LinearProjectionModel,
    Variants,
    check_choice,
    check_components,
    check_number,
)
from diptych.models.correlation._deflation import deflate
from diptych.models.linear import centre, fix_signs, project, relative_ridge, singular_noise, whitener
from diptych.models.moments import MomentModel, Moments
from diptych.space import Space


class LinearRegression(MomentModel):
    """Ridge regression both ways: predict the other side's features, then compare by cosine.

        W = (AᵀA + λI)⁻¹AᵀB,    V = (BᵀB + λI)⁻¹BᵀA

    An image query is mapped by W and compared with the texts, a text query by V and compared with the images. A point
    therefore holds both halves, and the model's `Space` picks the one that belongs to the direction of the query.

    Parameters
    ----------
    target : {"gallery", "texts", "images"}
        ``gallery`` maps every query into the features of what it searches, as Menon et al. (2015) do. ``texts`` or
        ``images`` use one of the two regressions for both directions, which gives one ordinary space.
    regularization : float
        The ridge λ relative to the mean of the diagonal it is added to.
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

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_to_text_: FloatArray
    text_to_image_: FloatArray

    def __init__(
        self,
        *,
        target: Literal["gallery", "texts", "images"] = "gallery",
        regularization: float = 1e-4,
        center: bool = True,
    ) -> None:
        self.target = target
        self.regularization = regularization
        self.center = center

    @property
    def space(self) -> Space:
        """Cosine; with ``target="gallery"`` of the half that belongs to the direction."""
        if self.target == "gallery":
            return Space("cosine", split=getattr(self, "n_text_features_", None))
        return Space("cosine")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("target", self.target, ("gallery", "texts", "images"))
        check_number("regularization", self.regularization, low=0)

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        sums = sums if self.center else sums.about_origin()
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_to_text_ = self._solve(sums.image, sums.cross, sums.precision)
        self.text_to_image_ = self._solve(sums.text, sums.cross.T, sums.precision)

    def _solve(self, moment: FloatArray, cross: FloatArray, precision: float) -> FloatArray:
        directions = whitener(moment, relative_ridge(moment, self.regularization), precision)
        return np.asarray(directions @ (directions.T @ cross))

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

    def __init__(
        self,
        *,
        n_components: int | None = 10,
        text_points: Literal["least_squares", "projection"] = "projection",
        metric: str = "cosine",
    ) -> None:
        self.n_components = n_components
        self.text_points = text_points
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("text_points", self.text_points, ("least_squares", "projection"))
        check_components(self.n_components, 1)

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
