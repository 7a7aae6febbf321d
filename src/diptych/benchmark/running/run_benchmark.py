"""Runs what is not done yet, in processes of this machine or on a Dask cluster, and keeps what is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.running.run_catalogue import Catalogue, Unit
from diptych.benchmark.running.run_unit import Failure, run_unit
from diptych.cluster import connect, dask_distributed
from diptych.errors import InvalidInputError, MissingDataError

_ATTEMPTS = 3


Outcome = Record | Failure
Progress = Callable[[Outcome | None, Sequence[Unit], int], None]


def _run_here(catalogue: Catalogue, units: Sequence[Unit], jobs: int) -> Iterator[Outcome]:
    """Yield what each unit gave, run in ``jobs`` processes, or in this one when there is one job.

    A process that is killed takes its siblings along; the units without a result are then started again, and given up
    after three deaths without a result between them.
    """
    if jobs == 1:
        yield from (run_unit(catalogue, unit) for unit in units)
        return
    waiting = dict.fromkeys(units)
    deaths = 0
    while waiting and deaths < _ATTEMPTS:
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1)
        try:
            for outcome in parallel(delayed(run_unit)(catalogue, unit) for unit in list(waiting)):
                deaths = 0
                del waiting[_unit_of(outcome)]
                yield outcome
        except TerminatedWorkerError:
            deaths += 1
    for unit in waiting:
        yield Failure(unit, "its process was killed, perhaps for want of memory; run again with --jobs 1")


def _run_on_cluster(catalogue: Catalogue, units: Sequence[Unit], address: str) -> Iterator[Outcome]:
    """Yield what each unit gave, run on the workers of a Dask scheduler.

    Workers need Diptych in the version of the driver and see the same data folder; results come back over the network.
    When a worker dies, the scheduler gives its units to others, and because a unit is decided by its declaration alone
    the results are the same.
    """
    with connect(address) as client:
        futures = {client.submit(run_unit, catalogue, unit, pure=False): unit for unit in units}
        for future in dask_distributed().as_completed(list(futures), loop=client.loop):
            error = future.exception()
            yield future.result() if error is None else Failure.of(futures[future], error)
            future.release()


def _unit_of(outcome: Outcome) -> Unit:
    return outcome.unit if isinstance(outcome, Failure) else Unit(outcome.task, outcome.fold, outcome.method)


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
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> RunReport:
    """Run every unit that has no record of the present declaration, and write each record the moment it comes.

    Units run in ``jobs`` processes, or on the workers of the Dask ``scheduler`` at an address. A run that was stopped
    goes on where it was. A unit that fails leaves the others alone. ``progress`` is
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
    waiting, failures, outdated, kept = _plan(catalogue, units, results)
    done: list[Unit] = []
    total = len(waiting)
    todo = list(waiting)
    outcomes = _run_here(catalogue, todo, jobs) if scheduler is None else _run_on_cluster(catalogue, todo, scheduler)
    if progress is not None:
        progress(None, todo, total)
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            failures.append(outcome)
        else:
            results.write(outcome)
            done.append(_unit_of(outcome))
        waiting.pop(_unit_of(outcome), None)
        if progress is not None:
            progress(outcome, list(waiting), total)
    return RunReport(tuple(done), kept, outdated, tuple(failures))


def _plan(
    catalogue: Catalogue, units: Sequence[Unit], results: ResultFolder
) -> tuple[dict[Unit, None], list[Failure], int, int]:
    """Return the units to run, those whose data are not here, and how many records are outdated or kept."""
    absent: dict[str, str] = {}
    for name in {unit.task for unit in units}:
        try:
            catalogue.task(name).data.folder()
        except MissingDataError as error:
            absent[name] = str(error)
    waiting: dict[Unit, None] = {}
    missing: list[Failure] = []
    outdated = kept = 0
    for unit in units:
        task = catalogue.task(unit.task)
        known = _known_record(results, unit)
        if known is not None and known.fingerprint == task.fingerprint(task.method(unit.method)):
            kept += 1
        elif unit.task in absent:
            missing.append(Failure(unit, absent[unit.task], missing=True))
        else:
            outdated += known is not None
            waiting[unit] = None
    return waiting, missing, outdated, kept


def _known_record(results: ResultFolder, unit: Unit) -> Record | None:
    """Return the record of a unit; a file that is none is made anew."""
    try:
        return results.find(unit.task, unit.method, unit.fold)
    except InvalidInputError:
        return None
