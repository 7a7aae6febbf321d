"""The stages of a long command: announced while they run, timed, and reported when they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from diptych.cli.pace import Pace
from diptych.cli.terminal import notes

Advance = Callable[[int, int], None]


class Stages:
    """Shows stages on stderr and remembers their seconds.

    A terminal gets a bar while a stage runs; a file or pipe gets one line when it has ended; ``quiet`` gives neither.

    >>> from diptych.cli.stages import Stages
    >>> stages = Stages(quiet=True)
    >>> with stages.run("add", "adding") as advance:
    ...     advance(1, 2)
    >>> list(stages.seconds)
    ['add']
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._quiet = quiet
        self._console = notes()

    @contextmanager
    def run(self, name: str, doing: str) -> Iterator[Advance]:
        """Time what happens inside under ``name``; calling what it yields with (done, total) moves the bar."""
        with self._timed(name, doing, (TimeElapsedColumn(),)) as advance:
            yield advance

    @contextmanager
    def count(self, name: str, doing: str) -> Iterator[Advance]:
        """Do the same for many things of one kind, and show how many are done, how fast, and how long it takes."""
        with self._timed(name, doing, (MofNCompleteColumn(), Pace())) as advance:
            yield advance

    @contextmanager
    def _timed(self, name: str, doing: str, columns: tuple[ProgressColumn, ...]) -> Iterator[Advance]:
        start = time.perf_counter()
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            *columns,
            console=self._console,
            expand=True,
            transient=True,
            disable=self._quiet or not self._console.is_terminal,
        ) as progress:
            task = progress.add_task(doing, total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)
        self.seconds[name] = time.perf_counter() - start
        self.note(f"{doing}: {self.seconds[name]:.1f} s")

    def note(self, text: str) -> None:
        """Say something beside the results."""
        if not self._quiet:
            self._console.print(text)
