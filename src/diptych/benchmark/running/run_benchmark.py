"""Runs what is not done yet, and keeps what is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.running.catalogue import Catalogue
from diptych.benchmark.running.engine import Engine
from diptych.benchmark.running.failure import Failure
from diptych.benchmark.running.local_engine import LocalEngine
from diptych.benchmark.running.unit import Unit
from diptych.errors import InvalidInputError, MissingDataError

Outcome = Record | Failure
Progress = Callable[[Outcome | None, Sequence[Unit], int], None]


@dataclass(frozen=True)
class RunReport:
    """What a run did: records it made, how many it found done, and what gave no result.

    ``outdated`` counts results of another declaration that were made anew.
    """

    done: tuple[Unit, ...]
    kept: int
    outdated: int
    failures: tuple[Failure, ...]

    @property
    def failed(self) -> list[Failure]:
        """Units that went wrong."""
        return [failure for failure in self.failures if not failure.missing]

    @property
    def missing(self) -> list[Failure]:
        """Units whose data or packages are not here."""
        return [failure for failure in self.failures if failure.missing]


def run_benchmark(
    catalogue: Catalogue,
    units: Sequence[Unit],
    results: ResultFolder,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> RunReport:
    """Run every unit that has no record of the present declaration, and write each record the moment it comes.

    A run that was stopped therefore goes on where it was. A unit that fails leaves the others alone. ``progress`` is
    called with each outcome, the units still waiting, and the total; first with None before anything has run.

    >>> import tempfile
    >>> from diptych.benchmark.results import ResultFolder
    >>> from diptych.benchmark.running import Catalogue, run_benchmark
    >>> catalogue = Catalogue(folds=1)
    >>> units = catalogue.units(["extendable-scenes-unseen"], ["random", "cfa"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run_benchmark(catalogue, units, ResultFolder(folder))
    ...     second = run_benchmark(catalogue, units, ResultFolder(folder))
    >>> len(first.done), len(second.done), second.kept
    (2, 0, 2)
    """
    waiting, missing, outdated, kept = _plan(catalogue, units, results)
    done: list[Unit] = []
    failures = list(missing)
    total = len(waiting)
    if progress is not None:
        progress(None, list(waiting), total)
    for outcome in (engine or LocalEngine()).run(catalogue, list(waiting)):
        if isinstance(outcome, Failure):
            failures.append(outcome)
            waiting.pop(outcome.unit, None)
        else:
            results.write(outcome)
            unit = Unit(outcome.task, outcome.fold, outcome.method)
            waiting.pop(unit, None)
            done.append(unit)
        if progress is not None:
            progress(outcome, list(waiting), total)
    return RunReport(tuple(done), kept, outdated, tuple(failures))


def _plan(
    catalogue: Catalogue, units: Sequence[Unit], results: ResultFolder
) -> tuple[dict[Unit, None], list[Failure], int, int]:
    """Return the units to run, those whose data are not here, and how many records are outdated or kept."""
    absent = _absent(catalogue, {unit.task for unit in units})
    waiting: dict[Unit, None] = {}
    missing: list[Failure] = []
    outdated = kept = 0
    for unit in units:
        task = catalogue.task(unit.task)
        known = _readable(results, unit)
        if known is not None and known.fingerprint == task.fingerprint(task.method(unit.method)):
            kept += 1
        elif unit.task in absent:
            missing.append(Failure(unit, absent[unit.task], missing=True))
        else:
            outdated += known is not None
            waiting[unit] = None
    return waiting, missing, outdated, kept


def _absent(catalogue: Catalogue, tasks: set[str]) -> dict[str, str]:
    reasons = {}
    for name in tasks:
        try:
            catalogue.task(name).data.folder()
        except MissingDataError as error:
            reasons[name] = str(error)
    return reasons


def _readable(results: ResultFolder, unit: Unit) -> Record | None:
    """Return the record of a unit; a file that is none is made anew."""
    try:
        return results.find(unit.task, unit.method, unit.fold)
    except InvalidInputError:
        return None
