"""One side of a factorisation in the features of its anchors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from diptych.arrays import FloatArray, row_blocks
from diptych.models.hashing.rbf_anchors import RbfAnchors
from diptych.models.linear import column_means

_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class AnchoredSide:
    """Centred features Φ of the training rows, their moment ΦᵀΦ, and the factor of ΦᵀΦ + ridge·I.

    The factor serves every regression on these features, which is what makes an iteration cheap.
    """

    anchors: RbfAnchors
    feature_mean: FloatArray
    features: FloatArray
    moment: FloatArray
    factor: tuple[FloatArray, bool]

    @classmethod
    def of(cls, rows: FloatArray, n_anchors: int, ridge: float, seed: int) -> AnchoredSide:
        """Draw anchors among ``rows`` and compute their features once."""
        anchors = RbfAnchors.drawn(rows, n_anchors, seed)
        features = anchors.features(rows)
        feature_mean = column_means(features)
        features -= feature_mean.astype(features.dtype)
        moment = np.zeros((features.shape[1], features.shape[1]))
        for block in row_blocks(len(features), _BLOCK_ROWS):
            moment += features[block].T @ features[block]
        factor = cho_factor(moment + ridge * np.eye(len(moment)))
        return cls(anchors, feature_mean, features, moment, factor)

    def products(self, latent: FloatArray) -> FloatArray:
        """Return ΦᵀV."""
        return (self.features.T @ latent.astype(self.features.dtype, copy=False)).astype(np.float64)

    def regression(self, products: FloatArray) -> FloatArray:
        """Return W = (ΦᵀΦ + ridge·I)⁻¹ ΦᵀV, which predicts the latent rows."""
        return np.asarray(cho_solve(self.factor, products))

    def mapped(self, projection: FloatArray) -> FloatArray:
        """Return Φ @ ``projection``."""
        return np.asarray(self.features @ projection.astype(self.features.dtype, copy=False))

    def reconstruction_error(self, basis: FloatArray, products: FloatArray, gram: FloatArray) -> float:
        """Return ‖Φ − VU‖² from ΦᵀV and VᵀV."""
        return float(np.trace(self.moment) - 2 * (basis.T * products).sum() + (basis @ basis.T * gram).sum())

    def regression_error(self, weights: FloatArray, products: FloatArray, gram: FloatArray) -> float:
        """Return ‖V − ΦW‖² from ΦᵀV and VᵀV."""
        return float(np.trace(gram) - 2 * (weights * products).sum() + (weights * (self.moment @ weights)).sum())
