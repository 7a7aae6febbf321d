"""Two views on one scale: centred, with rows of mean square length one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.linear import Moments, check_varies, moments


@dataclass(frozen=True)
class ScaledViews:
    """Means, scales and, per row, the joint second moment of [X, Y] after both are centred and divided by their scale.

    Methods that weigh the error of one view against that of the other need them on one scale, or the view with the
    larger numbers decides alone.
    """

    sums: Moments
    image_scale: float
    text_scale: float
    joint: FloatArray

    @classmethod
    def of(cls, images: FloatArray, texts: FloatArray) -> ScaledViews:
        """Measure two aligned matrices."""
        check_varies(images, name="images")
        check_varies(texts, name="texts")
        sums = moments(images, texts)
        image_scale, text_scale = (float(np.sqrt(np.trace(part) / sums.n_rows)) for part in (sums.image, sums.text))
        image, text = sums.image / image_scale / image_scale, sums.text / text_scale / text_scale
        cross = sums.cross / image_scale / text_scale
        return cls(sums, image_scale, text_scale, np.block([[image, cross], [cross.T, text]]) / sums.n_rows)

    @property
    def image_width(self) -> int:
        """Columns of the first view."""
        return len(self.sums.image)

    @property
    def image(self) -> FloatArray:
        """Mean of xxᵀ."""
        return self.joint[: self.image_width, : self.image_width]

    @property
    def text(self) -> FloatArray:
        """Mean of yyᵀ."""
        return self.joint[self.image_width :, self.image_width :]

    def unscaled(self, both: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split a map of the scaled views into one for each, to be applied to rows that are centred alone."""
        return both[: self.image_width] / self.image_scale, both[self.image_width :] / self.text_scale
