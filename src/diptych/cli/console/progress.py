"""How far a command is: the stages of a long one, and downloads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Protocol

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from diptych.cli.console.output import notes

_SECONDS_BETWEEN_LINES = 10.0
_STOPPING = "stopping after this step; Ctrl-C stops at once"


class Advance(Protocol):
    """Moves a bar to ``done`` of ``total``; ``note`` stands behind its description from then on."""

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Move it."""


def pace_words(done: float, left: float, seconds: float) -> str:
    """Return the things done per second and the time left at that pace; nothing before the first thing is done.

    >>> pace_words(done=50, left=100, seconds=10.0)
    '5.0/s, 0:20 left'
    """
    if done <= 0 or seconds <= 0:
        return ""
    pace = done / seconds
    rate = f"{pace:.1f}/s" if pace < 10 else f"{pace:,.0f}/s"
    if left <= 0:
        return rate
    minutes, rest = divmod(round(left / pace), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{rate}, {f'{hours}:{minutes:02d}' if hours else minutes}:{rest:02d} left"


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

    def run(self, name: str, description: str) -> AbstractContextManager[Advance]:
        """Time what happens inside under ``name``; calling what it yields with (done, total) moves the bar."""
        return self._timed(name, description, TimeElapsedColumn(), waits=False)

    def count(self, name: str, description: str) -> AbstractContextManager[Advance]:
        """Do the same for many things of one kind, and show how many are done, how fast, and how long it takes.

        Ctrl-C stops after the step that is under way, a second one at once.
        """
        pace = TextColumn("{task.fields[pace]}", style="progress.remaining")
        return self._timed(name, description, MofNCompleteColumn(), pace, waits=True)

    @contextmanager
    def _timed(self, name: str, description: str, *columns: ProgressColumn, waits: bool) -> Iterator[Advance]:
        start = time.perf_counter()
        told = time.monotonic()
        first: tuple[int, float] | None = None
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
            task = progress.add_task(description, total=None, pace="")
            # Set without the lock that an update takes: a handler must not wait for the thread that draws.
            wait = partial(setattr, progress.tasks[-1], "description", _STOPPING) if waits else None
            with _interrupts(wait=wait) as raise_if_interrupted:

                def advance(done: int, total: int, note: str = "") -> None:
                    nonlocal first, told
                    raise_if_interrupted()
                    now = time.monotonic()
                    # What was there already does not count.
                    first = first or (done, now)
                    pace, doing = pace_words(done - first[0], total - done, now - first[1]), f"{description}{note}"
                    progress.update(task, completed=done, total=total, description=doing, pace=pace)
                    if progress.disable and done < total and now - told >= _SECONDS_BETWEEN_LINES:
                        told = now
                        self.note(f"{doing}: {done:,} of {total:,}{pace and f', {pace}'}")

                yield advance
        self.seconds[name] = time.perf_counter() - start
        self.note(f"{description}: {self.seconds[name]:.1f} s")

    def note(self, text: str) -> None:
        """Say something beside the results."""
        if not self._quiet:
            self._console.print(text)


@contextmanager
def stage_by_stage(stages: Stages) -> Iterator[Callable[[str, int, int], None]]:
    """Show each thing that is being done as a stage of its own; one that failed has not ended, so no time is told."""
    under_way: dict[str, Advance] = {}
    with ExitStack() as stage:

        def go_on(doing: str, done: int, total: int) -> None:
            if doing not in under_way:
                stage.close()
                under_way.clear()
                under_way[doing] = stage.enter_context(stages.count(doing, doing))
            under_way[doing](done, total)

        yield go_on


@contextmanager
def _interrupts(*, wait: Callable[[], None] | None) -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C, and yield what raises it at a step of the stage.

    With ``wait``, which tells the user, the first one only waits for the next step: raised anywhere it may leave a
    library waiting for itself. In any case the next step stops: Python drops what is raised within a finaliser.
    """
    was_interrupted = False
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal was_interrupted
        waits = wait is not None and not was_interrupted
        was_interrupted = True
        if waits and wait is not None:
            wait()
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
def download_progress(*, quiet: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield what shows the bytes of each download on stderr: a bar in a terminal, a line now and then elsewhere.

    >>> with download_progress(quiet=True) as show:
    ...     show("getting a.zip", 10, 100)
    """
    console = notes()
    starts: dict[str, tuple[TaskID, int, float]] = {}
    told = 0.0
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    is_plain = quiet or not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=is_plain) as bars:

        def show(doing: str, done: int, total: int | None) -> None:
            nonlocal told
            now = time.monotonic()
            if doing not in starts or done < starts[doing][1]:
                starts[doing] = bars.add_task(doing, completed=done, total=total), done, now
            task, first, since = starts[doing]
            bars.update(task, completed=done, total=total)
            if is_plain and not quiet and (now - told >= _SECONDS_BETWEEN_LINES or done == total):
                told = now
                console.print(download_line(doing, done, total, done - first, now - since), soft_wrap=True)

        yield show


def download_line(doing: str, done: int, total: int | None, fresh: int, seconds: float) -> str:
    """Return how far a download is; ``fresh`` bytes came in these seconds.

    >>> download_line("getting a.zip", 1_000_000, 4_000_000, 1_000_000, 2.0)
    'getting a.zip: 1.0 of 4.0 MB at 0.5 MB/s, 6 s left'
    """
    rate = fresh / seconds if seconds > 0 else 0.0
    known = f" of {total / 1e6:,.1f}" if total is not None else ""
    left = f", {(total - done) / rate:,.0f} s left" if total is not None and rate > 0 and done < total else ""
    return f"{doing}: {done / 1e6:,.1f}{known} MB at {rate / 1e6:,.1f} MB/s{left}"
