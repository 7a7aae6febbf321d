"""How far a command is: the stages of a long one, and downloads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from types import FrameType
from typing import Protocol

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from diptych.cli.console.output import notes

LINE_INTERVAL_S = 10.0
STOPPING = "stopping after this step; Ctrl-C stops at once"


class Advance(Protocol):
    """Moves a bar to ``done`` of ``total``; ``note`` stands behind its description from then on."""

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Move it."""


class Stages:
    """Shows stages on stderr and remembers their seconds.

    A terminal gets a bar while a stage runs; a file or pipe gets a line every ten seconds and one when it has ended;
    ``quiet`` gives neither.

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
    def run(self, name: str, description: str) -> Iterator[Advance]:
        """Time what happens inside under ``name``; calling what it yields with (done, total) moves the bar.

        Once it has moved, Ctrl-C stops after the step that is under way, and a second one at once.
        """
        start = time.perf_counter()
        told = time.monotonic()
        columns = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
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
            bar = progress.add_task(description, total=None)
            task = progress.tasks[-1]
            with _interrupts(task) as raise_if_interrupted:

                def advance(done: int, total: int, note: str = "") -> None:
                    nonlocal told
                    raise_if_interrupted()
                    progress.update(bar, completed=done, total=total, description=f"{description}{note}")
                    now = time.monotonic()
                    if progress.disable and done < total and now - told >= LINE_INTERVAL_S:
                        told = now
                        self.note(f"{description}{note}: {done:,} of {total:,}{_left(task)}")

                yield advance
        self.seconds[name] = time.perf_counter() - start
        self.note(f"{description}: {self.seconds[name]:.1f} s")

    def note(self, text: str) -> None:
        """Say something beside the results."""
        if not self._quiet:
            self._console.print(text)


def _left(task: Task) -> str:
    seconds = task.time_remaining
    return f", {timedelta(seconds=round(seconds))} left" if seconds else ""


@contextmanager
def stage_by_stage(stages: Stages) -> Iterator[Callable[[str, int, int], None]]:
    """Show each thing that is being done as a stage of its own; one that failed has not ended, so no time is told."""
    under_way: dict[str, Advance] = {}
    with ExitStack() as stage:

        def go_on(doing: str, done: int, total: int) -> None:
            if doing not in under_way:
                stage.close()
                under_way.clear()
                under_way[doing] = stage.enter_context(stages.run(doing, doing))
            under_way[doing](done, total)

        yield go_on


@contextmanager
def _interrupts(task: Task) -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C, and yield what raises it at a step of the stage.

    The first one waits for the next step of a stage that has steps: raised anywhere it may leave a library waiting for
    itself. In any case the next step stops: Python drops what is raised within a finaliser.
    """
    was_interrupted = False
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal was_interrupted
        waits = task.total is not None and not was_interrupted
        was_interrupted = True
        if waits:
            # Set without the lock that an update takes: a handler must not wait for the thread that draws.
            task.description = STOPPING
        elif callable(before):
            before(number, frame)

    def raise_if_interrupted() -> None:
        if was_interrupted:
            raise KeyboardInterrupt

    # Only the main thread may change handlers, and one that is ignored stays so.
    is_ours = callable(before) and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield raise_if_interrupted
        raise_if_interrupted()
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def download_progress(stages: Stages) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show each download as a stage that counts megabytes."""
    with stage_by_stage(stages) as go_on:
        yield lambda doing, done, total: go_on(f"{doing} (MB)", done // 10**6, (total or 0) // 10**6)
