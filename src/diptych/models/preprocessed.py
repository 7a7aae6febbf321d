"""Feature scaling in front of any model, learned on the training rows and saved with it."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import clone

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.models.base import CrossModalModel, Need
from diptych.models.linear import column_deviations, moments, project
from diptych.models.parameters import check_choice, check_components
from diptych.space import Space

RowScaling = Literal["none", "l1", "l2", "hellinger"]
ROW_SCALINGS: tuple[RowScaling, ...] = ("none", "l1", "l2", "hellinger")


class Preprocessed(CrossModalModel):
    """A model behind fixed feature scaling: rows first, then columns, then principal components.

    How features are scaled is part of a method's result: Menon et al. (2015) tune "raw or ℓ2" like any parameter and
    reduce pictures to 128 and texts to 10 principal components first. As a model of its own, scaling is learned on the
    training rows alone, tuned through ``model__C``-style names, saved in the same folder, and served with the rest.

    Parameters
    ----------
    model : CrossModalModel
        What receives the scaled features.
    images, texts : {"none", "l1", "l2", "hellinger"}
        Scaling of each row: unit sum of absolute values, unit length, or the signed square root of the ℓ1-scaled row,
        under which the inner product of two histograms is their Bhattacharyya coefficient.
    standardize : bool
        Divide each centred column by its standard deviation.
    image_components, text_components : int or None
        Principal components to keep; None keeps the features as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA, Preprocessed
    >>> rng = np.random.default_rng(0)
    >>> images, texts = rng.random((60, 9)), rng.random((60, 5))
    >>> model = Preprocessed(model=CCA(n_components=3), images="hellinger").fit(images, texts)
    >>> model.encode_images(images).shape
    (60, 3)
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "In front of any other model: try ℓ2 or Hellinger scaling before tuning anything else."

    model_: CrossModalModel
    image_mean_: FloatArray
    text_mean_: FloatArray
    image_projection_: FloatArray | None
    text_projection_: FloatArray | None

    def __init__(
        self,
        *,
        model: CrossModalModel,
        images: RowScaling = "l2",
        texts: RowScaling = "none",
        standardize: bool = False,
        image_components: int | None = None,
        text_components: int | None = None,
    ) -> None:
        self.model = model
        self.images = images
        self.texts = texts
        self.standardize = standardize
        self.image_components = image_components
        self.text_components = text_components

    @property
    def space(self) -> Space:
        """The space of the inner model."""
        return self.model_.space if hasattr(self, "model_") else self.model.space

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        check_choice("images", self.images, ROW_SCALINGS)
        check_choice("texts", self.texts, ROW_SCALINGS)
        images, texts = scale_rows(images, self.images), scale_rows(texts, self.texts)
        self.image_projection_ = self.text_projection_ = None
        if self.standardize or self.image_components or self.text_components:
            self._fit_columns(images, texts)
        self.model_ = clone(self.model).fit(self._image_columns(images), self._text_columns(texts), labels)

    def _fit_columns(self, images: FloatArray, texts: FloatArray) -> None:
        sums = moments(images, texts)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_ = self._projection(images, sums.image_mean, sums.image, self.image_components)
        self.text_projection_ = self._projection(texts, sums.text_mean, sums.text, self.text_components)

    def _projection(self, rows: FloatArray, mean: FloatArray, moment: FloatArray, kept: int | None) -> FloatArray:
        scale = column_deviations(rows, mean) if self.standardize else np.ones(len(mean))
        if kept is None:
            return np.diag(1 / scale)
        vectors = eigh(moment / np.outer(scale, scale))[1][:, ::-1]
        return np.asarray(vectors[:, : check_components(kept, len(mean))] / scale[:, None])

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return self.model_.encode_images(self._image_columns(scale_rows(images, self.images)))

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return self.model_.encode_texts(self._text_columns(scale_rows(texts, self.texts)))

    def _image_columns(self, rows: FloatArray) -> FloatArray:
        return rows if self.image_projection_ is None else project(rows, self.image_mean_, self.image_projection_)

    def _text_columns(self, rows: FloatArray) -> FloatArray:
        return rows if self.text_projection_ is None else project(rows, self.text_mean_, self.text_projection_)


def scale_rows(rows: FloatArray, scaling: RowScaling) -> FloatArray:
    """Scale each row on its own; zero rows stay zero."""
    if scaling == "none":
        return rows
    if scaling == "l2":
        return unit_rows(rows)
    totals = np.abs(rows).sum(axis=1, keepdims=True)
    shares = rows / np.where(totals > 0, totals, 1)
    return np.asarray(np.sign(shares) * np.sqrt(np.abs(shares)) if scaling == "hellinger" else shares)
