"""Two sides, their ridges and the maps that whiten them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.linear import Moments, check_varies, moments, whitener
from diptych.models.parameters import check_number


@dataclass(frozen=True)
class WhitenedPair:
    """Centred moments and, for each side, R with Rᵀ(moment + ridge·I)R = I."""

    sums: Moments
    image: FloatArray
    text: FloatArray

    @classmethod
    def of(cls, images: FloatArray, texts: FloatArray, regularization: float) -> WhitenedPair:
        """Whiten with a ridge relative to the mean variance of a feature."""
        check_number("regularization", regularization, low=0)
        check_varies(images, name="images")
        check_varies(texts, name="texts")
        sums = moments(images, texts)
        ridges = [regularization * float(np.trace(moment)) / len(moment) for moment in (sums.image, sums.text)]
        return cls(
            sums, whitener(sums.image, ridges[0], sums.precision), whitener(sums.text, ridges[1], sums.precision)
        )


def factored_svd(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the thin SVD (U, s, V) of ``left @ right.T`` from its factors; V has columns, not rows."""
    left_basis, left_part = np.linalg.qr(left)
    right_basis, right_part = np.linalg.qr(right)
    inner_left, values, inner_right = np.linalg.svd(left_part @ right_part.T)
    kept = min(left_basis.shape[1], right_basis.shape[1])
    return left_basis @ inner_left[:, :kept], values[:kept], right_basis @ inner_right[:kept].T
