"""What is told while pictures and texts are added, what became of them, and which stage the others wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar


@dataclass(frozen=True)
class AddProgress:
    """Told after each batch: ``done`` of ``total`` records are dealt with, and the items ``stored`` are durable.

    Once an id has been in ``stored``, the item survives whatever happens to the process. ``slowest`` is the stage that
    the others have waited for: reading, encoding or writing; empty before anything was done.
    """

    done: int
    total: int
    stored: tuple[str, ...] = ()
    slowest: str = ""


Progress = Callable[[AddProgress], None]


def no_progress(_: AddProgress) -> None:
    """Tell nobody."""


@dataclass
class AddReport:
    """What became of each picture and text that was to be added.

    ``added``, ``updated``, ``renamed`` and ``unchanged`` count items; ``skipped`` gives the reason for each path that
    cannot be used; ``duplicates`` names, for each added path, a stored path with the same content; ``removed`` lists
    the paths that ``refresh`` found missing. ``described`` counts the unchanged items whose facts were read, without
    encoding anything; ``unclear`` says of which paths some facts could not be read, and why.
    """

    added: int = 0
    updated: int = 0
    renamed: int = 0
    unchanged: int = 0
    described: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def changed(self) -> int:
        """How many items were written."""
        return self.added + self.updated + self.renamed

    @property
    def counts(self) -> dict[str, int]:
        """How many pictures and texts came to what, by its name."""
        alike = {name: getattr(self, name) for name in ("added", "updated", "renamed", "unchanged")}
        return {**alike, "removed": len(self.removed), "skipped": len(self.skipped)}

    def include(self, later: AddReport) -> None:
        """Count what became of further pictures and texts as well."""
        for name in ("added", "updated", "renamed", "unchanged", "described"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        for name in ("skipped", "duplicates", "unclear"):
            getattr(self, name).update(getattr(later, name))
        self.removed += later.removed


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
