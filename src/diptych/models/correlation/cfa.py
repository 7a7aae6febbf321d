from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, LinearProjectionModel, check_choice, check_components
from diptych.models.linear import fix_signs, singular_noise
from diptych.models.moments import MomentModel, Moments


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

    singular_values_: FloatArray

    def __init__(
        self, *, n_components: int | None = None, scale: Literal["std", "none"] = "std", metric: str = "cosine"
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("scale", self.scale, ("std", "none"))
        check_components(self.n_components, 1)

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
