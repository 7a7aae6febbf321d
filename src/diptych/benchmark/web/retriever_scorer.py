"""Our own retriever's model, for orientation: it learns from captions, not from clicks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from diptych.arrays import FloatArray
from diptych.benchmark.web.web_data import WebData
from diptych.benchmark.web.web_scorer import WebScorer
from diptych.encoders import FeatureCache
from diptych.models import CCA, CrossModalModel, Preprocessed


class RetrieverScorer(WebScorer):
    """CCA of the training pictures and their whole captions, as a retriever starts with."""

    @property
    def settings(self) -> dict[str, Any]:
        """The model's parameters."""
        return {key: value for key, value in _model().get_params().items() if not isinstance(value, CrossModalModel)}

    def fit(self, data: WebData, feature: str) -> Self:
        """Learn from pictures and captions."""
        self._data, self._feature, self._cache = data, feature, FeatureCache()
        train = data.splits.train
        texts = self._cache.encode(data.text_encoder, list(train.texts))
        self._model = _model().fit(data.features[feature]["train"][train.owners], texts)
        return self

    def scores(self, queries: Sequence[str], part: str) -> FloatArray:
        """Return similarities in the common space."""
        texts = self._cache.encode(self._data.text_encoder, list(queries))
        return self._model.similarity(self._data.features[self._feature][part], texts).T


def _model() -> Preprocessed:
    return Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2")
