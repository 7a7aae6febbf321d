"""One line of a benchmark table, declared."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from diptych.benchmark.published import Published, PublishedTraining, published_map, published_training
from diptych.models import CrossModalModel, Preprocessed


@dataclass(frozen=True)
class Reference:
    """Where a paper prints the same method's result, and whether it was measured on the features we have."""

    paper: str
    table: str
    dataset: str
    method: str
    same_features: bool = True

    def look_up(self) -> Published:
        """Return the printed numbers."""
        return published_map(self.paper, self.table, self.dataset, self.method)

    def look_up_training(self) -> PublishedTraining | None:
        """Return the printed training time and parameters, where the table has them."""
        return published_training(self.paper, self.table, self.dataset, self.method)


@dataclass(frozen=True)
class Entry:
    """A method, the settings to choose from, and the printed result to stand beside it.

    ``group`` is the heading it stands under, such as a paper's "Ground truth".
    """

    name: str
    model: CrossModalModel
    grid: Sequence[Mapping[str, Sequence[Any]]] = field(default_factory=lambda: [{}])
    reference: Reference | None = None
    distances: bool = False
    group: str = ""

    @property
    def key(self) -> str:
        """The name as people type it and files are called: ``SCM-seq, 16 bits`` is ``scm-seq-16``."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().removesuffix(" bits")).strip("-")

    @property
    def method(self) -> CrossModalModel:
        """The model without the scaling in front of it."""
        return self.model.model if isinstance(self.model, Preprocessed) else self.model

    @property
    def n_bits(self) -> int | None:
        """The length of the codes, None for a method with real-valued points."""
        return getattr(self.method, "n_bits", None)

    @property
    def n_settings(self) -> int:
        """How many settings there are to choose from."""
        return sum(math.prod(len(values) for values in part.values()) for part in self.grid)

    def coarser(self, most: int) -> Entry:
        """Return the entry with at most ``most`` values of each parameter, evenly taken and with both ends."""
        grid = [{name: _thinned(values, most) for name, values in part.items()} for part in self.grid]
        return replace(self, grid=grid)


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return list(values)
    return [values[round(step * (len(values) - 1) / (most - 1))] for step in range(most)]
