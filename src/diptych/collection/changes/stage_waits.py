"""The pace of a pipeline: which stage the others wait for, and how much goes through it at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


class StageWaits:
    """Seconds that one thread spends on stages, or waits for those that other threads do ahead.

    Where stages overlap, only the slowest is waited for. A stage within another counts for itself alone.

    >>> waits = StageWaits()
    >>> waits.longest
    ''
    >>> list(waits.timed("reading", iter("ab"))), waits.longest
    (['a', 'b'], 'reading')
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @property
    def longest(self) -> str:
        """The stage that took most of the time; empty before the first."""
        return max(self._seconds, key=self._seconds.__getitem__, default="")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside."""
        started, before = time.perf_counter(), sum(self._seconds.values())
        try:
            yield
        finally:
            within = sum(self._seconds.values()) - before
            own = time.perf_counter() - started - within
            self._seconds[name] = self._seconds.get(name, 0.0) + own

    def timed(self, name: str, items: Iterator[T]) -> Iterator[T]:
        """Yield items, and count the time it takes to get them."""
        while True:
            with self.stage(name):
                found = list(islice(items, 1))
            if not found:
                return
            yield found[0]


def growing_batches(items: Sequence[T], size: int, most: int, quick_seconds: float) -> Iterator[Sequence[T]]:
    """Yield batches that grow, up to a largest size, while they take next to no time: each is a commit of every table.

    >>> list(growing_batches("abcdefghi", 2, 4, quick_seconds=60))
    ['ab', 'cdef', 'ghi']
    """
    start = 0
    while start < len(items):
        asked = time.perf_counter()
        yield items[start : start + size]
        start += size
        if time.perf_counter() - asked < quick_seconds:
            size = min(2 * size, most)
