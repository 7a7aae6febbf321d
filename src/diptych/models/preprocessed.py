"""Feature scaling in front of any model, learned on the training rows and saved with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.models.base import CrossModalModel, Need, Side
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.linear import centre, column_deviations, column_means, project
from diptych.models.moments import moments
from diptych.models.parameters import Count, check_components
from diptych.space import Space

RowScaling = Literal["none", "l1", "l2", "hellinger"]
ROW_SCALINGS: tuple[RowScaling, ...] = ("none", "l1", "l2", "hellinger")


@dataclass(kw_only=True, eq=False, repr=False)
class Preprocessed(CrossModalModel):
    """A model behind fixed feature scaling: rows first, then columns, then principal components.

    How features are scaled is part of a method's result: Menon et al. (2015) tune "raw or ℓ2" like any parameter. As a
    model of its own, scaling is learned on the training rows alone, tuned with the inner model's parameters as
    ``model__C``, saved in the same folder, and served with the rest.

    Parameters
    ----------
    model : CrossModalModel
        What receives the scaled features.
    images, texts : {"none", "l1", "l2", "hellinger"}
        Scaling of each row: unit sum of absolute values, unit length, or the signed square root of the ℓ1-scaled row,
        under which the inner product of two histograms is their Bhattacharyya coefficient.
    image_parts : tuple of int or None
        Widths of the parts of an image row that are scaled each by itself, as of encoders side by side.
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
    is_method: ClassVar[bool] = False

    model: CrossModalModel
    images: RowScaling = "l2"
    texts: RowScaling = "none"
    image_parts: tuple[int, ...] | None = None
    standardize: bool = False
    image_components: Count | None = None
    text_components: Count | None = None

    @property
    def space(self) -> Space:
        """The space of the inner model."""
        return self.model_.space if hasattr(self, "model_") else self.model.space

    def decision_images(self, images: ArrayLike) -> FloatArray:
        """Return the real outputs of a hashing model behind the scaling, one column per bit."""
        return self._hashing.decision_images(self._scale("image", self._rows("image", images)))

    def decision_texts(self, texts: ArrayLike) -> FloatArray:
        """Return the real outputs of a hashing model behind the scaling, one column per bit."""
        return self._hashing.decision_texts(self._scale("text", self._rows("text", texts)))

    def decision_pairs(self, images: ArrayLike, texts: ArrayLike) -> FloatArray:
        """Return the real outputs of aligned pairs of a hashing model behind the scaling."""
        return self._hashing.decision_pairs(*self._scale_pairs(images, texts))

    def encode_pairs(self, images: ArrayLike, texts: ArrayLike) -> NDArray[np.uint8]:
        """Return the unified codes of aligned pairs of a hashing model behind the scaling."""
        return self._hashing.encode_pairs(*self._scale_pairs(images, texts))

    @property
    def _hashing(self) -> HashingModel | Preprocessed:
        self._check_fitted()
        if isinstance(self.model_, (HashingModel, Preprocessed)):
            return self.model_
        raise InvalidInputError(
            f"{type(self.model_).__name__} makes no codes, so it has no outputs before the sign; use a hashing method"
        )

    def _scale_pairs(self, images: ArrayLike, texts: ArrayLike) -> tuple[FloatArray, FloatArray]:
        self._check_fitted()
        image_rows = self._rows("image", images)
        text_rows = self._rows("text", texts)
        self._check_rows(image_rows, text_rows)
        return self._scale("image", image_rows), self._scale("text", text_rows)

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        if self.image_parts is not None and sum(self.image_parts) != images.shape[1]:
            raise InvalidInputError(f"image_parts must sum to the {images.shape[1]} features, got {self.image_parts!r}")
        images, texts = self._scale_image_rows(images), scale_rows(texts, self.texts)
        self.image_columns_ = _fit_columns(images, self.standardize, self.image_components, "image_components")
        self.text_columns_ = _fit_columns(texts, self.standardize, self.text_components, "text_components")
        images, texts = _scale_columns(images, self.image_columns_), _scale_columns(texts, self.text_columns_)
        self.model_ = clone(self.model).fit(images, texts, labels)

    def _encode_side(self, side: Side, rows: FloatArray) -> AnyArray:
        encode = self.model_.encode_images if side == "image" else self.model_.encode_texts
        return encode(self._scale(side, rows))

    def _scale(self, side: Side, rows: FloatArray) -> FloatArray:
        rows = self._scale_image_rows(rows) if side == "image" else scale_rows(rows, self.texts)
        return _scale_columns(rows, *self._of_side(side, "columns"))

    def _scale_image_rows(self, images: FloatArray) -> FloatArray:
        if self.image_parts is None:
            return scale_rows(images, self.images)
        parts = np.split(images, np.cumsum(self.image_parts)[:-1], axis=1)
        return np.hstack([scale_rows(part, self.images) for part in parts])


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
    vectors = scipy.linalg.eigh(moments(rows, rows).image / np.outer(divisor, divisor))[1][:, ::-1]
    return [mean, np.ascontiguousarray(vectors[:, :kept] / divisor[:, None])]


def _scale_columns(rows: FloatArray, columns: list[FloatArray]) -> FloatArray:
    if not columns:
        return rows
    mean, change = columns
    if change.ndim == 2:
        return project(rows, mean, change)
    return np.asarray(centre(rows, mean) / change.astype(rows.dtype, copy=False))
