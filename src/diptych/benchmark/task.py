"""A benchmark, declared: data, entries, protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from diptych.benchmark.entry import Entry
from diptych.benchmark.principal_components import with_principal_components
from diptych.benchmark.sensitivity import Sensitivity
from diptych.data import Dataset, DatasetSplits, find_dataset
from diptych.encoders import Encoder, encode_splits
from diptych.protocols import HoldOut

_QUICK_VALUES = 3
_QUICK_REPEATS = 2
_QUICK = "QUICK LOOK: at most 3 values of each parameter, 2 hold-outs"


@dataclass(frozen=True)
class Task:
    """What is trained, chosen and asked; never how.

    ``options`` go to the data set's loader; ``source`` declares a data set that is not registered. Raw items become
    features by the encoders, and these are reduced to ``components`` (pictures, texts) where they are wider.
    ``published_distances`` says that a paper prints a table of distance measures for this data set.
    """

    name: str
    title: str
    dataset: str
    entries: tuple[Entry, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    protocol: HoldOut = field(default_factory=HoldOut)
    published_distances: bool = False
    source: Dataset | None = None
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    components: tuple[int, int] | None = None
    sensitivities: tuple[Sensitivity, ...] = ()
    notes: tuple[str, ...] = ()

    def load(self) -> DatasetSplits:
        """Return the training and test pairs as feature matrices."""
        source = find_dataset(self.dataset) if self.source is None else self.source
        splits = encode_splits(source.load(**self.options), self.image_encoder, self.text_encoder)
        return splits if self.components is None else with_principal_components(splits, *self.components)

    def coarser(self) -> Task:
        """Return the task with coarser grids and fewer hold-outs, for a first look; its title says so."""
        return replace(
            self,
            title=f"{self.title}; {_QUICK}",
            entries=tuple(entry.coarser(_QUICK_VALUES) for entry in self.entries),
            protocol=replace(self.protocol, repeats=_QUICK_REPEATS),
            sensitivities=tuple(replace(curve, draws=1) for curve in self.sensitivities),
        )
