"""How far a download is, how fast it goes and how long it will take."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from diptych.cli.terminal import notes

_SECONDS_BETWEEN_LINES = 10.0


class DownloadProgress:
    """Shows the bytes of each stage on stderr: as a bar in a terminal, as a line now and then elsewhere.

    It is called with what is being done, the bytes done and the bytes in all.

    >>> from diptych.cli.download_progress import DownloadProgress
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
