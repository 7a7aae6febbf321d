"""Feature scaling in front of any model, learned on the training rows and saved with it."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import clone

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.models.base import CrossModalModel, Need
from diptych.models.linear import centre, column_deviations, column_means, moments, project
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
        Principal components to keep of that side; None keeps its features.

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
    image_columns_: list[FloatArray]
    text_columns_: list[FloatArray]

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
        self.image_columns_ = _fit_columns(images, self.standardize, self.image_components, "image_components")
        self.text_columns_ = _fit_columns(texts, self.standardize, self.text_components, "text_components")
        images, texts = _scale_columns(images, self.image_columns_), _scale_columns(texts, self.text_columns_)
        self.model_ = clone(self.model).fit(images, texts, labels)

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return self.model_.encode_images(_scale_columns(scale_rows(images, self.images), self.image_columns_))

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return self.model_.encode_texts(_scale_columns(scale_rows(texts, self.texts), self.text_columns_))


def scale_rows(rows: FloatArray, scaling: RowScaling) -> FloatArray:
    """Scale each row on its own; zero rows stay zero."""
    if scaling == "none":
        return rows
    if scaling == "l2":
        return unit_rows(rows)
    totals = np.abs(rows).sum(axis=1, keepdims=True)
    shares = rows / np.where(totals > 0, totals, 1)
    return np.asarray(np.sign(shares) * np.sqrt(np.abs(shares)) if scaling == "hellinger" else shares)


def _fit_columns(rows: FloatArray, standardize: bool, components: int | None, name: str) -> list[FloatArray]:
    """Learn what happens to the columns: nothing (empty), a mean and a divisor, or a mean and a projection."""
    if not standardize and components is None:
        return []
    kept = check_components(components, rows.shape[1], name=name)
    mean = column_means(rows)
    divisor = column_deviations(rows, mean) if standardize else np.ones(len(mean))
    if components is None:
        return [mean, divisor]
    vectors = eigh(moments(rows, rows).image / np.outer(divisor, divisor))[1][:, ::-1]
    return [mean, np.ascontiguousarray(vectors[:, :kept] / divisor[:, None])]


def _scale_columns(rows: FloatArray, columns: list[FloatArray]) -> FloatArray:
    if not columns:
        return rows
    mean, change = columns
    if change.ndim == 2:
        return project(rows, mean, change)
    return np.asarray(centre(rows, mean) / change.astype(rows.dtype, copy=False))
