"""Hashing by one hyperplane per bit and side."""

from __future__ import annotations

from diptych.arrays import FloatArray
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.linear import project


class LinearHashingModel(HashingModel):
    """Codes sgn((x − x̄)P) and sgn((y − ȳ)Q) with the means of the training rows."""

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_projection_: FloatArray
    text_projection_: FloatArray

    def _decide_images(self, images: FloatArray) -> FloatArray:
        return project(images, self.image_mean_, self.image_projection_)

    def _decide_texts(self, texts: FloatArray) -> FloatArray:
        return project(texts, self.text_mean_, self.text_projection_)
