"""Processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from diptych.benchmark.results import Record
from diptych.benchmark.running.catalogue import Catalogue
from diptych.benchmark.running.failure import Failure
from diptych.benchmark.running.run_unit import run_unit
from diptych.benchmark.running.unit import Unit

_ATTEMPTS = 3


class LocalEngine:
    """Runs units in ``jobs`` processes, or in this one when there is one job.

    A process that is killed takes its siblings along; the units without a result are then started again, and given up
    after three deaths without a result between them.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs

    def run(self, catalogue: Catalogue, units: Sequence[Unit]) -> Iterator[Record | Failure]:
        """Yield what each unit gave, in the order in which they end."""
        if self.jobs == 1:
            yield from (run_unit(catalogue, unit) for unit in units)
            return
        waiting = dict.fromkeys(units)
        deaths = 0
        while waiting and deaths < _ATTEMPTS:
            try:
                for outcome in self._parallel(catalogue, list(waiting)):
                    deaths = 0
                    del waiting[_unit(outcome)]
                    yield outcome
            except TerminatedWorkerError:
                deaths += 1
        for unit in waiting:
            yield Failure(unit, "its process was killed, perhaps for want of memory; run again with --jobs 1")

    def _parallel(self, catalogue: Catalogue, units: Sequence[Unit]) -> Iterator[Record | Failure]:
        parallel = Parallel(n_jobs=self.jobs, backend="loky", return_as="generator_unordered", batch_size=1)
        outcomes: Iterator[Record | Failure] = parallel(delayed(run_unit)(catalogue, unit) for unit in units)
        return outcomes


def _unit(outcome: Record | Failure) -> Unit:
    return outcome.unit if isinstance(outcome, Failure) else Unit(outcome.task, outcome.fold, outcome.method)
