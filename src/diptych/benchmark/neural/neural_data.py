"""One data set as every kind of method needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.data import DatasetSplits, Pairs

Reads = Literal["features", "words", "pixels"]


@dataclass(frozen=True, eq=False)
class NeuralData:
    """The items as they came, and the features that encoders made of them.

    >>> from diptych.benchmark.neural import NeuralData
    >>> from diptych.data import load_dataset
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics, encode_splits
    >>> items = load_dataset("scenes", n_train=20, n_test=5, size=32)
    >>> features = encode_splits(items, ColourEdgeHistograms(size=32), TfidfTopics(n_components=4), cache=False)
    >>> train, test = NeuralData(items, features).parts("words")
    >>> train.has_image_features, test.texts == items.test.texts
    (True, True)
    """

    items: DatasetSplits
    features: DatasetSplits

    def lacks(self, reads: Reads) -> str:
        """Say what is missing for methods that read items, empty where nothing is."""
        if reads != "features" and self.items.train.has_text_features:
            return "reads words, but the texts come as features"
        if reads == "pixels" and self.items.train.has_image_features:
            return "reads pixels, but the pictures come as features"
        return ""

    def parts(self, reads: Reads) -> tuple[Pairs, Pairs]:
        """Return what to learn from and what to ask: features, features of pictures and strings, or items."""
        if reads == "pixels":
            return self.items.train, self.items.test
        if reads == "features":
            return self.features.train, self.features.test
        raw, made = self.items, self.features
        return (
            raw.train.with_features(images=np.asarray(made.train.images)),
            raw.test.with_features(images=np.asarray(made.test.images)),
        )
