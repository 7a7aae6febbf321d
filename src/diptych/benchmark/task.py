"""A benchmark, declared: data, entries, protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from diptych.benchmark.entry import Entry
from diptych.data import DatasetSplits, load_dataset
from diptych.encoders import encode_splits
from diptych.protocols import HoldOut


@dataclass(frozen=True)
class Task:
    """What is trained, chosen and asked; never how.

    ``options`` go to the data set's loader. ``published_distances`` says that a paper prints a table of distance
    measures for this data set.
    """

    name: str
    title: str
    dataset: str
    entries: tuple[Entry, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    protocol: HoldOut = field(default_factory=HoldOut)
    published_distances: bool = False

    def load(self) -> DatasetSplits:
        """Return the training and test pairs as feature matrices."""
        return encode_splits(load_dataset(self.dataset, **self.options))
