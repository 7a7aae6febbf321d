"""The shape of methods that regress labels from features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.models.base import CrossModalModel
from diptych.models.labels import Targets
from diptych.models.linear import moments


class RegressionSums(NamedTuple):
    """Everything that a regression of labels needs to know of the data: products, none of which grows with n."""

    image: FloatArray
    text: FloatArray
    cross: FloatArray
    image_labels: FloatArray
    text_labels: FloatArray


class LabelRegressionModel(CrossModalModel):
    """Encodes x as its scores of the training classes, ``x @ weights``, without centring; a subclass learns them.

    Each side is divided by the root mean square of its row lengths, so that parameters mean the same on every scale.
    """

    classes_: AnyArray
    image_weights_: FloatArray
    text_weights_: FloatArray

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return np.asarray(images @ self.image_weights_.astype(images.dtype))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return np.asarray(texts @ self.text_weights_.astype(texts.dtype))

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        images, texts, targets = targets.with_labels_only(images, texts)
        image_scale, text_scale = _row_length(images), _row_length(texts)
        image_weights, text_weights = self._regress(images, texts, targets.indicator, image_scale, text_scale)
        self.classes_ = targets.classes
        self.image_weights_, self.text_weights_ = image_weights / image_scale, text_weights / text_scale

    def _regress(
        self, images: FloatArray, texts: FloatArray, labels: FloatArray, image_scale: float, text_scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weights of rows that were divided by their scales."""
        raise NotImplementedError


def regression_sums(
    images: FloatArray, texts: FloatArray, labels: FloatArray, image_scale: float, text_scale: float
) -> RegressionSums:
    """Return the products of the scaled sides with themselves, each other and the labels."""
    sums = moments(images, texts).about_origin()
    return RegressionSums(
        sums.image / image_scale**2,
        sums.text / text_scale**2,
        sums.cross / (image_scale * text_scale),
        product(images, labels) / image_scale,
        product(texts, labels) / text_scale,
    )


def product(rows: FloatArray, targets: FloatArray) -> FloatArray:
    """Return ``rowsᵀ targets`` in float64, block by block."""
    total = np.zeros((rows.shape[1], targets.shape[1]))
    for block in row_blocks(len(rows)):
        total += rows[block].T.astype(np.float64) @ targets[block]
    return total


def _row_length(rows: FloatArray) -> float:
    blocks = (rows[block] for block in row_blocks(len(rows)))
    total = sum(float(np.einsum("ij,ij->", block, block, dtype=np.float64)) for block in blocks)
    return float(np.sqrt(total / len(rows))) or 1.0
