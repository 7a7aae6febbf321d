"""One side of a model whose other side is computed elsewhere."""

from __future__ import annotations

from typing import ClassVar, Never

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel, Need
from diptych.space import Space


class PictureSide(CrossModalModel):
    """The picture side of a fitted model, for texts that come as its points already.

    A model of clicks takes queries as strings, while the parts of a `FusedModel` take rows of numbers. An encoder of
    texts can make the points of queries; this part then leaves them as they are, and makes those of pictures.

    Attributes
    ----------
    model_ : CrossModalModel
        What encodes pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA
    >>> from diptych.models.fusion import PictureSide
    >>> rng = np.random.default_rng(0)
    >>> images, texts = rng.normal(size=(40, 6)), rng.normal(size=(40, 4))
    >>> model = CCA(n_components=3).fit(images, texts)
    >>> side = PictureSide.of(model, n_text_features=3)
    >>> bool((side.similarity(images, model.encode_texts(texts)) == model.similarity(images, texts)).all())
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "In a fusion, for a model whose texts are encoded by something else."

    model_: CrossModalModel

    @classmethod
    def of(cls, model: CrossModalModel, *, n_text_features: int) -> PictureSide:
        """Return the picture side of a fitted model whose points have ``n_text_features`` coordinates."""
        side = cls()
        side.model_ = model
        side.n_pairs_, side.n_image_features_ = model.n_pairs_, model.n_image_features_
        side.n_text_features_ = n_text_features
        return side

    @property
    def space(self) -> Space:
        """The space of the model."""
        return self.model_.space if hasattr(self, "model_") else Space("dot")

    def _learn(self, images: FloatArray, texts: FloatArray, labels: object) -> Never:
        raise InvalidInputError(
            "a picture side is taken from a fitted model: call PictureSide.of(model, n_text_features=...)"
        )

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return self.model_.encode_images(images)

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return texts
