"""ConSE, which learns nothing from the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from diptych.arrays import FloatArray
from diptych.benchmark.web.web_data import WebData
from diptych.benchmark.web.web_scorer import WebScorer
from diptych.encoders import ImageNetLabels, MeanWordVectors, imagenet_labels, label_vectors, load_word_vectors
from diptych.models import ConSE


class ConseScorer(WebScorer):
    """A picture is the mean vector of its ten likeliest ImageNet labels, a query that of its words.

    The network's own classifier makes probabilities of its features, so no picture is read again.
    """

    @property
    def settings(self) -> dict[str, Any]:
        """The model and what words are."""
        return {"model": "ConSE", "n_labels": 10, "vectors": "auto"}

    def fit(self, data: WebData, feature: str) -> Self:
        """Take the labels' vectors; nothing is learned."""
        self._data, self._feature = data, feature
        table = load_word_vectors()
        self._words = MeanWordVectors(vectors=table)
        self._labels = ImageNetLabels(network=feature)
        vectors, _ = label_vectors([label.lemmas[0] for label in imagenet_labels()], table)
        some = self._labels.probabilities(data.features[feature]["dev"][:2])
        self._model = ConSE(label_vectors=vectors).fit(some, vectors[: len(some)])
        return self

    def scores(self, queries: Sequence[str], part: str) -> FloatArray:
        """Return cosines among words."""
        probabilities = self._labels.probabilities(self._data.features[self._feature][part])
        texts = self._words.transform(list(queries))
        return self._model.similarity(probabilities, texts).T
