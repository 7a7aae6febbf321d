"""What ``bench run`` shows while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from diptych.benchmark.results import Record
from diptych.benchmark.running import Failure, Unit
from diptych.cli.terminal import notes

_SHOWN = 2


class BenchProgress:
    """A bar with the units that are running; failures are named at once, in one line.

    Units start in their order, so that the first of those without a result are the ones that run.
    """

    def __init__(self, *, quiet: bool, at_once: int) -> None:
        self._console = notes()
        self._quiet = quiet
        self._at_once = at_once
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def __call__(self, outcome: Record | Failure | None, waiting: Sequence[Unit], total: int) -> None:
        """Take note of one outcome."""
        running = [str(unit) for unit in waiting[: min(self._at_once, _SHOWN)]]
        self._bar.update(
            self._task, completed=total - len(waiting), total=total, description="; ".join(running) or "done"
        )
        if isinstance(outcome, Failure) and not self._quiet:
            self._tell(outcome)

    def _tell(self, failure: Failure) -> None:
        # What a method lacks it lacks on every fold; once is enough.
        line = f"{failure.unit.method}: {failure.message}" if failure.missing else f"{failure.unit}: {failure.message}"
        if line not in self._told:
            self._told.add(line)
            self._console.print(f"{'skipped' if failure.missing else 'failed'} {line}", markup=False)
