"""What every way of holding out training pairs has in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from diptych.data import Pairs
from diptych.protocols.retrieval import Retrieval


class HoldOuts(Protocol):
    """A way of holding out parts of the training pairs; its repr says everything that decides the draws."""

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]] | Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held out): pairs that ask for one another, or queries with a gallery of their own."""
