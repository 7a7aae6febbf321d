"""Random choices that come out the same on every machine."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class PortableRandom:
    """A stream of random choices, named by what it is for.

    Only ``random.Random.random()`` is used, the one method whose sequence Python promises to keep; weights are
    integers, so no rounding of sums can change a choice. The name of the stream is hashed into its seed, hence streams
    of neighbouring numbers are unrelated.
    """

    def __init__(self, *name: str | int) -> None:
        digest = hashlib.sha256("/".join(str(part) for part in name).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big")).random

    def uniform(self, low: float, high: float) -> float:
        """Return a number between ``low`` and ``high``."""
        return low + (high - low) * self._random()

    def integer(self, bound: int) -> int:
        """Return one of 0, …, ``bound`` − 1."""
        return int(self._random() * bound)

    def bernoulli(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random() < probability

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely."""
        return items[self.integer(len(items))]

    def weighted(self, weights: Mapping[Item, int]) -> Item:
        """Return a key with probability proportional to its integer weight."""
        left = self.integer(sum(weights.values()))
        for item, weight in weights.items():
            if left < weight:
                return item
            left -= weight
        raise AssertionError("weights must be positive somewhere")

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order."""
        pool = list(items)
        return [pool.pop(self.integer(len(pool))) for _ in items]
