"""What every engine does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from diptych.benchmark.results import Record
from diptych.benchmark.running.catalogue import Catalogue
from diptych.benchmark.running.failure import Failure
from diptych.benchmark.running.unit import Unit


class Engine(Protocol):
    """Something that runs units, here or elsewhere."""

    def run(self, catalogue: Catalogue, units: Sequence[Unit]) -> Iterator[Record | Failure]:
        """Yield what each unit gave, in the order in which they end."""
