"""The linear map of one side of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.models import CrossModalModel, LinearRegression, Preprocessed, SharedSpace
from diptych.models.correlation.projection import LinearProjectionModel
from diptych.models.preprocessed import RowScaling, scale_rows
from diptych.retriever.explaining.subject import SubjectSide


@dataclass(frozen=True, eq=False)
class LinearSide:
    """How the features x of one side become a point: (scaled(x) − mean) @ rows + constant, before normalisation."""

    mean: FloatArray
    rows: FloatArray
    constant: FloatArray
    scaling: RowScaling = "none"

    def scaled(self, features: AnyArray) -> FloatArray:
        """Return one row of features, scaled, in float64."""
        return np.asarray(scale_rows(np.asarray(features, dtype=np.float64), self.scaling)[0])

    @property
    def of_nothing(self) -> FloatArray:
        """The point of features that are all zero."""
        return np.asarray(self.constant - self.mean @ self.rows)


@singledispatch
def linear_side(model: CrossModalModel, side: SubjectSide) -> LinearSide | None:
    """Return the linear map of a side, or None for a model that is not linear."""
    del model, side
    return None


@linear_side.register
def _(model: LinearProjectionModel, side: SubjectSide) -> LinearSide | None:
    if side == "image":
        return _plain(model.image_mean_, model.image_projection_)
    return _plain(model.text_mean_, model.text_projection_)


@linear_side.register
def _(model: LinearRegression, side: SubjectSide) -> LinearSide | None:
    is_image = side == "image"
    mean = model.image_mean_ if is_image else model.text_mean_
    as_text = model.image_to_text_ if is_image else np.eye(len(mean))
    as_image = np.eye(len(mean)) if is_image else model.text_to_image_
    halves = {"gallery": np.hstack([as_text, as_image]), "texts": as_text, "images": as_image}
    return _plain(mean, halves[model.target])


@linear_side.register
def _(model: SharedSpace, side: SubjectSide) -> LinearSide | None:
    width = model.n_image_features_ if side == "image" else model.n_text_features_
    return _plain(np.zeros(width), np.eye(width))


@linear_side.register
def _(model: Preprocessed, side: SubjectSide) -> LinearSide | None:
    inner = linear_side(model.model_, side)
    if inner is None or inner.scaling != "none":
        return None
    scaling, columns = (model.images, model.image_columns_) if side == "image" else (model.texts, model.text_columns_)
    if not columns:
        return replace(inner, scaling=scaling)
    mean, change = (np.asarray(part, dtype=np.float64) for part in columns)
    rows = change @ inner.rows if change.ndim == 2 else inner.rows / change[:, None]
    return LinearSide(mean, np.asarray(rows), inner.of_nothing, scaling)


def _plain(mean: FloatArray, rows: FloatArray) -> LinearSide:
    exact = np.asarray(rows, dtype=np.float64)
    return LinearSide(np.asarray(mean, dtype=np.float64), exact, np.zeros(exact.shape[1]))
