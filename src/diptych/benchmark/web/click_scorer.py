"""A model of the click log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import clone

from diptych.arrays import FloatArray
from diptych.benchmark.web.web_data import WebData
from diptych.benchmark.web.web_scorer import WebScorer
from diptych.models.clicks.click_model import ClickModel


class ClickScorer(WebScorer):
    """Fits a click model on the log."""

    def __init__(self, model: ClickModel) -> None:
        self._model = model

    @property
    def settings(self) -> dict[str, Any]:
        """The model's class and parameters."""
        return {"model": type(self._model).__name__, **self._model.get_params()}

    def fit(self, data: WebData, feature: str) -> Self:
        """Fit a fresh copy of the model."""
        self._data, self._feature = data, feature
        self._fitted: ClickModel = clone(self._model).fit_clicks(data.log, data.logged(feature))
        return self

    def scores(self, queries: Sequence[str], part: str) -> FloatArray:
        """Return the model's scores."""
        return self._fitted.scores(list(queries), self._data.features[self._feature][part])
