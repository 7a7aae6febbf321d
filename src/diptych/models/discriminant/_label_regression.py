"""The shape of methods that regress labels from features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.models.base import CrossModalModel
from diptych.models.moments import Moments


class RegressionSums(NamedTuple):
    """Everything that a regression of labels needs to know of the data: products, none of which grows with n."""

    image: FloatArray
    text: FloatArray
    cross: FloatArray
    image_labels: FloatArray
    text_labels: FloatArray
    image_scale: float
    text_scale: float

    @classmethod
    def of(cls, sums: Moments) -> RegressionSums:
        """Divide each side by the root mean square of its row lengths: parameters then mean the same on every scale."""
        raw = sums.about_origin()
        labels = raw.known_labels
        image_scale, text_scale = (float(np.sqrt(np.trace(part) / raw.n_rows)) or 1.0 for part in (raw.image, raw.text))
        return cls(
            raw.image / image_scale**2,
            raw.text / text_scale**2,
            raw.cross / (image_scale * text_scale),
            labels.image.T / image_scale,
            labels.text.T / text_scale,
            image_scale,
            text_scale,
        )


class LabelRegressionModel(CrossModalModel):
    """Encodes x as its scores of the training classes, ``x @ weights``, without centring; a subclass learns them."""

    classes_: AnyArray
    image_weights_: FloatArray
    text_weights_: FloatArray

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return np.asarray(images @ self.image_weights_.astype(images.dtype))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return np.asarray(texts @ self.text_weights_.astype(texts.dtype))

    def _keep(self, classes: AnyArray, sums: RegressionSums, image: FloatArray, text: FloatArray) -> None:
        """Keep the weights of rows that were divided by their scales."""
        self.classes_ = classes
        self.image_weights_, self.text_weights_ = image / sums.image_scale, text / sums.text_scale
