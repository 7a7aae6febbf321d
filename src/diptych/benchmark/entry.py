"""One line of a benchmark table, declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.benchmark.published import Published, published_map
from diptych.models import CrossModalModel


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


@dataclass(frozen=True)
class Entry:
    """A method, the settings to choose from, and the printed result to stand beside it."""

    name: str
    model: CrossModalModel
    grid: Sequence[Mapping[str, Sequence[Any]]] = field(default_factory=lambda: [{}])
    reference: Reference | None = None
    distances: bool = False
