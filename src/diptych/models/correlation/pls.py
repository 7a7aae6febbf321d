from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, LinearProjectionModel, Variants, check_choice, check_components
from diptych.models.linear import fix_signs, singular_noise
from diptych.models.moments import MomentModel, Moments

# A component whose image scores carry less than this share of the variance is rounding.
_LEAST_SHARE = 1e-12


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


def deflate(image: FloatArray, cross: FloatArray, n_components: int, precision: float) -> tuple[FloatArray, FloatArray]:
    """Return image weights for undeflated data and text loadings, from AᵀA and AᵀB alone."""
    moment, covariance = image.copy(), cross.copy()
    carry = np.eye(len(image))
    least_variance = max(_LEAST_SHARE, precision**2) * float(np.trace(image))
    least_covariance = max(1e-10, 8 * precision) * float(np.linalg.norm(cross))
    weights, loadings = [], []
    for _ in range(n_components):
        direction, strength = _leading_right(covariance)
        weight = carry @ (covariance @ direction)
        length = float(np.linalg.norm(weight))
        if strength <= least_covariance or length == 0:
            break
        weight /= length
        spread = moment @ weight
        variance = float(weight @ spread)
        if variance <= least_variance:
            break
        loading, text_loading = spread / variance, covariance.T @ weight / variance
        covariance -= variance * np.outer(loading, text_loading)
        moment -= variance * np.outer(loading, loading)
        carry -= np.outer(weight, loading)
        weights.append(weight)
        loadings.append(text_loading)
    return np.stack(weights, axis=1), np.stack(loadings, axis=1)


def _leading_right(matrix: FloatArray) -> tuple[FloatArray, float]:
    """Return the leading right singular vector and its singular value."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    size = tall.shape[1]
    squares, vectors = scipy.linalg.eigh(tall.T @ tall, subset_by_index=[size - 1, size - 1])
    vector, strength = vectors[:, 0], float(np.sqrt(max(squares[0], 0.0)))
    if tall is matrix:
        return vector, strength
    return (matrix.T @ vector / strength if strength > 0 else np.zeros(matrix.shape[1])), strength
