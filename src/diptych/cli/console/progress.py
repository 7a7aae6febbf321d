"""How far a command is: the stages of a long one, and downloads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any, Protocol, Self

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from diptych.cli.console.output import notes

_SECONDS_BETWEEN_LINES = 10.0
_STOPPING = "stopping after this step; Ctrl-C stops at once"


class Advance(Protocol):
    """Moves a bar to ``done`` of ``total``; ``note`` stands behind its description from then on."""

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Move it."""


class PaceColumn(ProgressColumn):
    """Shows the things done per second, and the time left at that pace; what was there already does not count.

    >>> PaceColumn.words(done=50, left=100, seconds=10.0)
    '5.0/s, 0:20 left'
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[TaskID, tuple[float, float]] = {}

    def render(self, task: Task) -> Text:
        """Return the column's text."""
        if task.total is None:
            return Text()
        elapsed = task.finished_time or task.elapsed or 0.0
        there, since = self._starts.setdefault(task.id, (task.completed, elapsed))
        words = self.words(task.completed - there, task.total - task.completed, elapsed - since)
        return Text(words, style="progress.remaining")

    @staticmethod
    def words(done: float, left: float, seconds: float) -> str:
        """Return pace and remaining time; nothing before the first thing is done."""
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
        return self._timed(name, description, MofNCompleteColumn(), PaceColumn(), waits=True)

    @contextmanager
    def _timed(self, name: str, description: str, *columns: ProgressColumn, waits: bool) -> Iterator[Advance]:
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
            task = progress.add_task(description, total=None)
            # Set without the lock that an update takes: a handler must not wait for the thread that draws.
            wait = partial(setattr, progress.tasks[-1], "description", _STOPPING) if waits else None
            tell = _LinesBetween(self.note) if progress.disable else None
            with _interrupts(wait=wait) as raise_if_interrupted:

                def advance(done: int, total: int, note: str = "") -> None:
                    raise_if_interrupted()
                    progress.update(task, completed=done, total=total, description=f"{description}{note}")
                    if tell is not None:
                        tell(f"{description}{note}", done, total)

                yield advance
        self.seconds[name] = time.perf_counter() - start
        self.note(f"{description}: {self.seconds[name]:.1f} s")

    def note(self, text: str) -> None:
        """Say something beside the results."""
        if not self._quiet:
            self._console.print(text)


class _LinesBetween:
    """Tells now and then how far a stage is, where no bar can be drawn."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told = time.monotonic()
        self._first: tuple[int, float] | None = None

    def __call__(self, doing: str, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` are done, unless it was told a moment ago."""
        now = time.monotonic()
        there, since = self._first = self._first or (done, now)
        if done < total and now - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = now
            pace = PaceColumn.words(done - there, total - done, now - since)
            self._tell(f"{doing}: {done:,} of {total:,}{pace and f', {pace}'}")


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


class DownloadProgress:
    """Shows the bytes of each stage on stderr: as a bar in a terminal, as a line now and then elsewhere.

    >>> with DownloadProgress(quiet=True) as progress:
    ...     progress("getting a.zip", 10, 100)
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = notes()
        self._quiet = quiet
        self._has_bar = not quiet and self._console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._has_bar,
        )
        self._stage = ""
        self._task = TaskID(0)
        self._started = self._told = 0.0
        self._first = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._bar.stop()

    def __call__(self, doing: str, done: int, total: int | None) -> None:
        """Show that ``done`` of ``total`` bytes are done."""
        now = time.monotonic()
        if doing != self._stage or done < self._first:
            self._stage, self._started, self._first = doing, now, done
            self._task = self._bar.add_task(doing, completed=done, total=total)
        self._bar.update(self._task, completed=done, total=total)
        is_due = now - self._told >= _SECONDS_BETWEEN_LINES or done == total
        if not self._quiet and not self._has_bar and is_due:
            self._told = now
            self._console.print(self._line(doing, done, total, now - self._started), soft_wrap=True)

    def _line(self, doing: str, done: int, total: int | None, seconds: float) -> str:
        rate = (done - self._first) / seconds if seconds > 0 else 0.0
        known = f" of {total / 1e6:,.1f}" if total is not None else ""
        left = f", {(total - done) / rate:,.0f} s left" if total is not None and rate > 0 and done < total else ""
        return f"{doing}: {done / 1e6:,.1f}{known} MB at {rate / 1e6:,.1f} MB/s{left}"
