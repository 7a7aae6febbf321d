"""Cross-view hashing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import Grid, check_number
from diptych.models.correlation.cca import canonical_directions
from diptych.models.hashing._solvers import mixed_directions
from diptych.models.hashing.hashing_model import LinearHashingModel
from diptych.models.moments import MomentModel, Moments


class CVH(MomentModel, LinearHashingModel):
    """Cross-view hashing: the signs of the canonical variates.

        min over A, C of  ‖XA − YC‖²   with AᵀXᵀXA + CᵀYᵀYC = I

    This is the spectral objective of Kumar and Udupa when an item is similar to itself alone, the case everybody uses:
    canonical correlation analysis, solved here by one SVD of the whitened cross-covariance. Canonical variates come in
    falling correlation, so that late bits carry little, and there are no more of them than the narrower side has
    features; beyond that, bits are random hyperplanes of the common space, weighted by the correlations, which is ours.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    regularization : float
        Ridge relative to the mean variance of a feature. Where there are more features than pairs it decides the
        result; the absolute 1e-4 of public code means something else on every scale of the features.
    random_state : int
        Of the mixtures, where ``n_bits`` exceeds the canonical directions.

    Attributes
    ----------
    correlations_ : array
        Canonical correlations of the directions there are, decreasing.

    References
    ----------
    Kumar and Udupa, "Learning hash functions for cross-view similarity search", IJCAI 2011. A widely copied program
    multiplies by the text covariance where it must be inverted; this one inverts.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CVH
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(300, 6))
    >>> images, texts = meaning @ rng.normal(size=(6, 12)), meaning @ rng.normal(size=(6, 9))
    >>> model = CVH(n_bits=16, regularization=1e-6).fit(images, texts)
    >>> model.encode_images(images[:2]).shape
    (2, 2)
    >>> bool(model.score(images, texts) > 0.9)
    True
    """

    when_to_use: ClassVar[str] = "Codes from pairs without labels, in closed form: the baseline of cross-modal hashing."
    grid: ClassVar[Grid] = {"regularization": [0.1, 1.0, 10.0]}

    correlations_: FloatArray

    def __init__(self, *, n_bits: int = 16, regularization: float = 1.0, random_state: int = 0) -> None:
        self.n_bits = n_bits
        self.regularization = regularization
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("regularization", self.regularization, low=0)

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        left, self.correlations_, right = canonical_directions(
            sums.image,
            sums.text,
            sums.cross,
            self.regularization * float(np.trace(sums.image)) / len(sums.image),
            self.regularization * float(np.trace(sums.text)) / len(sums.text),
            n_components=self.n_bits,
            precision=sums.precision,
            offset=sums.offset,
        )
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = mixed_directions(
            left, right, self.correlations_, self.n_bits, self.random_state
        )
