"""The shape that linear methods share: one mean and one projection for each side."""

from __future__ import annotations

from diptych.arrays import FloatArray
from diptych.models.base import CrossModalModel
from diptych.models.linear import project


class LinearProjectionModel(CrossModalModel):
    """Encodes x as ``(x − mean) @ projection``; a subclass learns the four arrays."""

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_projection_: FloatArray
    text_projection_: FloatArray

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return project(images, self.image_mean_, self.image_projection_)

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return project(texts, self.text_mean_, self.text_projection_)
