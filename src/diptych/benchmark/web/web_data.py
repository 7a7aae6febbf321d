"""What methods for click logs learn from, and what they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from diptych.arrays import FloatArray, IntArray
from diptych.benchmark.web.judged_lists import JudgedLists, caption_lists, crowd_lists, expert_lists
from diptych.benchmark.web.simulated_clicks import simulate_clicks
from diptych.benchmark.web.word_lists import word_lists
from diptych.data import DatasetSplits, Pairs, load_dataset
from diptych.data.clicks import ClickLog
from diptych.encoders import EfficientNetLite, Encoder, FeatureCache, SentenceEncoder

FEATURES = {"lite2": "EfficientNet-Lite2", "lite0": "EfficientNet-Lite0"}
"""Image features by name, and what they are."""


@dataclass(frozen=True, eq=False)
class WebData:
    """A click log with features of its pictures, and lists to rank.

    ``features`` are keyed by the name of a network and the part of the data set. ``lists`` are ranked in the test part;
    ``development`` in the development part, to choose weights and parameters by.
    """

    splits: DatasetSplits
    log: ClickLog
    features: Mapping[str, Mapping[str, FloatArray]]
    lists: Mapping[str, JudgedLists]
    development: JudgedLists
    text_encoder: Encoder

    def logged(self, feature: str) -> FloatArray:
        """Return the features of the log's pictures, in its order."""
        rows: FloatArray = self.features[feature]["train"][self._rows]
        return rows

    @cached_property
    def _rows(self) -> IntArray:
        return self.log.image_rows(self.splits.train.ids.tolist())

    def every_list(self) -> dict[str, tuple[JudgedLists, str]]:
        """Return each list with the part whose pictures it ranks."""
        return {name: (lists, "test") for name, lists in self.lists.items()} | {"captions": (self.development, "dev")}


def flickr8k_web(*, seed: int = 0) -> WebData:
    """Return Flickr8k with clicks simulated on its training part, and the human judgements of its test part."""
    splits = load_dataset("flickr8k")
    cache = FeatureCache()
    features = {
        name: {
            part: cache.encode(EfficientNetLite(network=name), list(pairs.images))
            for part, pairs in splits.parts.items()
        }
        for name in FEATURES
    }
    lists = {
        "experts": expert_lists(splits),
        "crowd": crowd_lists(splits),
        "words": word_lists(splits.train, splits.test),
    }
    development = caption_lists(_development(splits))
    return WebData(splits, simulate_clicks(splits.train, seed=seed), features, lists, development, SentenceEncoder())


def _development(splits: DatasetSplits) -> Pairs:
    if splits.dev is None:
        raise ValueError("the data set has no development part")
    return splits.dev
