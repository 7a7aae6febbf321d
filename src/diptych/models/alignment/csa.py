"""Canonical similarity analysis: CCA compared by a weighted cosine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray, map_rows, unit_rows
from diptych.models.base import FromTask, Grid, Side
from diptych.models.correlation.cca import AUTO_NOISE_GAIN, RidgedModel, canonical_directions
from diptych.models.linear import project
from diptych.models.moments import Moments
from diptych.models.parameters import Count, Ridge
from diptych.space import Space


@dataclass(kw_only=True, eq=False, repr=False)
class CSA(RidgedModel):
    """Canonical similarity analysis: canonical variates weighted by how well each agrees on the pairs.

        sim(x, y) = Σ_k ρ_k u_k v_k / (‖u‖ ‖v‖)

    for the canonical variates u, v of `CCA` and the correlations ρ of the pairs. Each tower brings its variates to unit
    length and multiplies them by √ρ, so that an inner product is the similarity. Unlike `CCA` with ``weight_power=0.5``
    the lengths are those before the weights: what lies in weak components counts against an item.

    Parameters
    ----------
    n_components : int or None
        How many canonical variates are compared; None keeps all.
    regularization : float or "auto"
        As in `CCA`. The authors have none, and need more pairs than both sides have features.

    Attributes
    ----------
    correlations_ : array
        ρ of the pairs that it was fitted on, between 0 and 1.

    References
    ----------
    Li, Chinchali and Topcu, "CSA: data-efficient mapping of unimodal features to multimodal features", ICLR 2025. Its
    public class ``ReNormalizedCCA`` takes a transposed factor; this one agrees with the class that is used by default.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CSA
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(200, 2))
    >>> images = meaning @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(200, 8))
    >>> texts = meaning @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(200, 5))
    >>> CSA(n_components=2).fit(images, texts).correlations_.round(1)
    array([1., 1.])
    """

    when_to_use: ClassVar[str] = "As CCA, when items should lose by what they have beyond the common part."
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS}
    space: ClassVar[Space] = Space("dot")

    n_components: Count | None = None
    regularization: Ridge = "auto"

    def _fit_ridged(self, sums: Moments, image_ridge: float, text_ridge: float) -> None:
        image, text, cross = (moment / sums.n_rows for moment in (sums.image, sums.text, sums.cross))
        self.image_projection_, _, self.text_projection_ = canonical_directions(
            image,
            text,
            cross,
            image_ridge,
            text_ridge,
            n_components=self.n_components,
            precision=sums.precision,
            offset=sums.offset,
            noise_gain=AUTO_NOISE_GAIN if self.regularization == "auto" else 1.0,
        )
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        # With a ridge the variates have less than unit variance on the pairs.
        agreement = _diagonal(self.image_projection_, cross, self.text_projection_)
        lengths = _diagonal(self.image_projection_, image, self.image_projection_)
        lengths *= _diagonal(self.text_projection_, text, self.text_projection_)
        self.correlations_ = np.clip(agreement / np.sqrt(np.maximum(lengths, np.finfo(np.float64).tiny)), 0.0, 1.0)

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        mean, projection = self._of_side(side, "mean", "projection")
        weights = np.sqrt(self.correlations_).astype(rows.dtype)
        return map_rows(lambda block: unit_rows(project(block, mean, projection)) * weights, rows, len(weights))


def _diagonal(left: FloatArray, middle: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ik,ij,jk->k", left, middle, right, optimize=True))
