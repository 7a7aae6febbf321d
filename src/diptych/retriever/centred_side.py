"""The picture side of a model, around the mean of a collection."""

from __future__ import annotations

from typing import ClassVar, Never, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel
from diptych.models.base import Need
from diptych.models.linear import column_means
from diptych.space import Space


class CentredSide(CrossModalModel):
    """The picture side of a fitted model with inner products, its points moved so that their mean is zero.

    Texts come as points of the model already: a model of clicks takes queries as strings, the parts of a fusion take
    rows of numbers, and an encoder of texts can make the points of queries.

    ⟨b, a(x) − ā⟩ differs from ⟨b, a(x)⟩ by one number for each query, which changes no order; but the mean of its
    scores over the pictures is 0 for every query. In a fusion it then raises some pictures and lowers others, and the
    probabilities of the other parts stay in force for queries that it says nothing about.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import Text2Image
    >>> from diptych.retriever import CentredSide
    >>> model = Text2Image().fit_clicks(ClickLog.from_triads(["a", "b"], ["1", "2"], [1, 1]), np.eye(2))
    >>> CentredSide.around(model, np.eye(2)).encode_images(np.eye(2)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "In a fusion of a retriever with models of clicks."

    model_: CrossModalModel
    mean_: FloatArray

    @classmethod
    def around(cls, model: CrossModalModel, pictures: ArrayLike) -> Self:
        """Return the picture side of a fitted model, centred on the points of some pictures, given by features."""
        if model.space != Space("dot"):
            raise InvalidInputError(
                f"{type(model).__name__} compares points by {model.space.name}; only inner products can be centred"
            )
        points = model.encode_images(pictures)
        side = cls()
        side.model_ = model
        side.n_pairs_, side.n_image_features_ = model.n_pairs_, model.n_image_features_
        side.n_text_features_ = points.shape[1]
        side.mean_ = column_means(points)
        return side

    @property
    def space(self) -> Space:
        """The inner product."""
        return Space("dot")

    def _learn(self, images: FloatArray, texts: FloatArray, labels: object) -> Never:
        raise InvalidInputError("a picture side is taken from a fitted model: call CentredSide.around(model, pictures)")

    def _encode_images(self, images: FloatArray) -> AnyArray:
        points = self.model_.encode_images(images)
        return np.asarray(points - self.mean_.astype(points.dtype))

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return texts
