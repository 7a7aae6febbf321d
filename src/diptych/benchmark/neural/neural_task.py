"""Where ranking methods and networks are compared, declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diptych.benchmark.neural.neural_data import NeuralData
from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import Encoder, encode_splits
from diptych.metrics import AP, Measure, RecallAtK
from diptych.models.preprocessed import RowScaling

LABELLED: tuple[Measure, ...] = (AP(50, "retrieved"), AP(50, "total"), AP())
CAPTIONED: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10))


@dataclass(frozen=True)
class NeuralTask:
    """A data set, its features, and what is measured on it.

    With classes, an item is relevant that shares one with the query, and MAP is measured, as in table 1 of Zhang et al.
    (2017); without, it is the query's own picture or captions, and recall is measured, as in table 2. ``same_data``
    says that the paper's values were measured on this data set.
    """

    name: str
    title: str
    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    source: Dataset | None = None
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    images: RowScaling = "l2"
    texts: RowScaling = "l2"
    has_classes: bool = True
    same_data: bool = False
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured in both directions; the first is what methods are ordered by."""
        return LABELLED if self.has_classes else CAPTIONED

    @property
    def published_table(self) -> str:
        """The table of the paper that measures the same."""
        return "Table 1" if self.has_classes else "Table 2"

    @property
    def published_data(self) -> str:
        """The data set of that table."""
        return "MSCOCO" if self.has_classes else "Flickr30K"

    def find(self) -> Dataset:
        """Return the declaration of the data set."""
        return find_dataset(self.dataset) if self.source is None else self.source

    def load(self) -> NeuralData:
        """Return the items and their features; pictures without any class are left out where there are classes."""
        loaded = self.find().load(**self.options)
        if self.has_classes:
            loaded = replace(loaded, train=_with_class(loaded.train), test=_with_class(loaded.test), dev=None)
        return NeuralData(loaded, self._encoded(loaded))

    def _encoded(self, loaded: DatasetSplits) -> DatasetSplits:
        return encode_splits(replace(loaded, dev=None), self.image_encoder, self.text_encoder)


def _with_class(pairs: Pairs) -> Pairs:
    if not pairs.is_multi_label:
        return pairs
    kept = np.asarray(pairs.labels).any(axis=1)
    return pairs if kept.all() else pairs.select(kept)
