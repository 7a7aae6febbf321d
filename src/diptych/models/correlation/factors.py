"""Factors that both sides of a pair share, without whitening: cross-modal factor analysis and bilinear models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, LinearProjectionModel
from diptych.models.linear import fix_signs, singular_noise
from diptych.models.moments import MomentModel, Moments
from diptych.models.parameters import Count, Positive, check_components


@dataclass(kw_only=True, eq=False, repr=False)
class CFA(MomentModel, LinearProjectionModel):
    """Cross-modal factor analysis: orthonormal directions that bring paired points close.

        min over Ω_a, Ω_b of  ‖A Ω_a − B Ω_b‖²,    Ω_aᵀΩ_a = Ω_bᵀΩ_b = I

    The solution is the leading singular vectors of AᵀB on centred data. Unlike `CCA` nothing is whitened, so the
    leading directions follow the features of largest variance; ``scale="std"`` takes that advantage away from them.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None keeps all singular vectors with a singular value above rounding.
    scale : {"std", "none"}
        Divide each feature by its standard deviation first. Our default; the reference does not say.
    metric : str
        Name of the `Space`. Costa Pereira et al. (2014) use NCc, ``pearson``, which depends on the arbitrary signs of
        the components; cosine does not.

    References
    ----------
    Li, Dimitrova, Li and Sethi, "Multimedia content processing through cross-modal association", ACM Multimedia 2003.
    Costa Pereira et al., TPAMI 2014, eq. 1–3 (eq. 2 omits the Ω factors and eq. 3 a transpose).

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CFA
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(100, 4))
    >>> images = texts @ rng.normal(size=(4, 6))
    >>> CFA(n_components=3).fit(images, texts).encode_images(images).shape
    (100, 3)
    """

    when_to_use: ClassVar[str] = "Pairs without labels when there are too few of them to whiten; the simplest baseline."
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS}
    needs_covariances: ClassVar[bool] = False

    n_components: Count | None = None
    scale: Literal["std", "none"] = "std"
    metric: str = "cosine"

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        # Dividing by 1 leaves constant columns, which have no scale, as they are.
        image_scale, text_scale = (
            np.where(side > 0, side, 1.0) if self.scale == "std" else np.ones(len(side)) for side in sums.deviations()
        )
        left, singular, right = np.linalg.svd(sums.cross / np.outer(image_scale, text_scale), full_matrices=False)
        noise = singular.max(initial=0.0) * singular_noise(max(sums.cross.shape), sums.precision, sums.offset)
        kept = check_components(self.n_components, max(1, int((singular > noise).sum())))
        left, right = fix_signs(left[:, :kept], right[:kept].T)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.singular_values_ = singular[:kept]
        self.image_projection_ = left / image_scale[:, None]
        self.text_projection_ = right / text_scale[:, None]


_RIDGE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class BLM(MomentModel, LinearProjectionModel):
    """Asymmetric bilinear model: picture and text are two styles of one content.

        a_i ≈ F_a c_i,    b_i ≈ F_b c_i

    Each side is scaled to the same total variance. With ``variant="factors"`` the maps are the leading eigenvectors of
    the joint covariance of (a, b), and the content of a single side is its least squares estimate. With
    ``variant="projections"``, as in the package of generalised multiview analysis, the eigenvectors of
    [[AᵀA, α AᵀB], [α BᵀA, BᵀB]] are projections themselves; a large α makes them those of `CFA` without scaling.

    Parameters
    ----------
    n_components, metric
        As in `CCA`.
    variant : {"projections", "factors"}
        The two forms above. Which one published comparisons mean is not known.
    alpha : float
        Weight of the agreement in ``projections``; 500 in the public Wikipedia script of that package.

    References
    ----------
    Tenenbaum and Freeman, "Separating style and content with bilinear models", Neural Computation 2000. Sharma et al.,
    "Generalized multiview analysis: a discriminative latent space", CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import BLM
    >>> rng = np.random.default_rng(0)
    >>> content = rng.normal(size=(100, 2))
    >>> images, texts = content @ rng.normal(size=(2, 6)), content @ rng.normal(size=(2, 4))
    >>> BLM(n_components=2, variant="factors").fit(images, texts).score(images, texts)
    1.0
    """

    when_to_use: ClassVar[str] = "Pairs without labels, as a classic baseline of factor models."
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS, "alpha": [1.0, 10.0]}

    n_components: Count | None = 10
    variant: Literal["projections", "factors"] = "projections"
    alpha: Positive = 500.0
    metric: str = "cosine"

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        image_scale, text_scale = np.sqrt(np.trace(sums.image)), np.sqrt(np.trace(sums.text))
        agreement = self.alpha if self.variant == "projections" else 1.0
        cross = agreement * sums.cross / (image_scale * text_scale)
        joint = np.block([[sums.image / image_scale**2, cross], [cross.T, sums.text / text_scale**2]])
        vectors = _leading(joint, check_components(self.n_components, min(sums.cross.shape)), sums.precision)
        left, right = fix_signs(vectors[: len(sums.image)], vectors[len(sums.image) :])
        if self.variant == "factors":
            left, right = _least_squares(left), _least_squares(right)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = left / image_scale, right / text_scale


def _leading(joint: FloatArray, wanted: int, precision: float) -> FloatArray:
    size = len(joint)
    values, vectors = scipy.linalg.eigh(joint, subset_by_index=[size - wanted, size - 1])
    kept = values > max(size * np.finfo(np.float64).eps, 8 * precision) * values[-1]
    return np.asarray(vectors[:, kept][:, ::-1])


def _least_squares(factors: FloatArray) -> FloatArray:
    """Return the map from x to (FᵀF + εI)⁻¹ Fᵀx as columns."""
    gram = factors.T @ factors
    ridge = _RIDGE * float(np.trace(gram)) / len(gram)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), factors.T).T)
