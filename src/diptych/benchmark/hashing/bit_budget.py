"""Every hashing method at every length of code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike

from joblib import Parallel, delayed

from diptych.benchmark.hashing.bit_budget_report import BitBudgetReport
from diptych.benchmark.hashing.code_journal import CodeJournal
from diptych.benchmark.hashing.code_result import CodeResult
from diptych.benchmark.hashing.code_storage import measure_storage
from diptych.benchmark.hashing.hashing_task import HashingTask
from diptych.benchmark.hashing.measuring import measure_fold
from diptych.data import DatasetSplits
from diptych.errors import InvalidInputError, MissingPackageError, UnknownNameError
from diptych.models import model_classes
from diptych.models.hashing.hashing_model import HashingModel

Progress = Callable[[int, int], None]
Stage = Callable[[str], AbstractContextManager[Progress]]

BITS = (4, 8, 16, 32, 64, 128)


def hashing_methods() -> dict[str, type[HashingModel]]:
    """Return every public hashing method by its command-line name.

    >>> from diptych.benchmark.hashing import hashing_methods
    >>> hashing_methods()["cvh"].__name__
    'CVH'
    """
    return {name: cls for name, cls in model_classes().items() if issubclass(cls, HashingModel)}


def run_bit_budget(
    task: HashingTask,
    *,
    bits: Sequence[int] = BITS,
    methods: Collection[str] | None = None,
    folds: int = 5,
    n_jobs: int = 1,
    n_searched: int = 1_000_000,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
) -> BitBudgetReport:
    """Measure every hashing method at every length and fold of a task.

    Methods keep their default parameters, so that nothing is chosen on test data. Methods that learn from labels are
    left out where there are none, and so are those whose packages are not installed; the report says why.
    ``n_searched`` random codes are searched to time each length. In ``folder`` every fit is noted, so that a run that
    was stopped goes on. ``stage(title)`` is entered around each long step and gives a function (done, total) to call.
    """
    if not bits or min(bits) < 1:
        raise InvalidInputError(f"bits must be lengths of at least 1, got {list(bits)}")
    if folds < 1:
        raise InvalidInputError(f"folds must be at least 1, got {folds}")
    chosen = _chosen(methods)
    stage = _silent if stage is None else stage
    with stage(f"loading {task.name}"):
        splits = task.load()
    journal = None if folder is None else CodeJournal(folder, task, splits)
    results: list[CodeResult] = []
    left_out: dict[str, str] = {}
    for name, cls in chosen.items():
        if "labels" in cls.needs and not task.has_classes:
            left_out[name] = "learns from labels, of which there are none"
            continue
        try:
            with stage(f"{task.name}: {name}") as progress:
                results += _measured(task, splits, cls(), sorted(set(bits)), folds, journal, n_jobs, progress)
        except MissingPackageError as error:
            left_out[name] = str(error)
    with stage("timing searches"):
        storage = tuple(measure_storage(length, n_searched) for length in sorted(set(bits)))
    supervised = tuple(name for name, cls in chosen.items() if "labels" in cls.needs)
    return BitBudgetReport(task, tuple(results), storage, supervised, left_out)


@contextmanager
def _silent(title: str) -> Iterator[Progress]:
    yield lambda done, total: None


def _chosen(methods: Collection[str] | None) -> dict[str, type[HashingModel]]:
    known = hashing_methods()
    for name in methods or ():
        if name not in known:
            raise UnknownNameError("hashing method", name, known)
    return known if not methods else {name: known[name] for name in methods}


def _measured(
    task: HashingTask,
    splits: DatasetSplits,
    method: HashingModel,
    bits: Sequence[int],
    folds: int,
    journal: CodeJournal | None,
    n_jobs: int,
    progress: Progress,
) -> list[CodeResult]:
    fits = [(length, fold) for length in bits for fold in range(folds)]
    known = {fit: journal.known(method, *fit) for fit in fits} if journal is not None else {}
    missing = [fit for fit in fits if known.get(fit) is None]
    runs = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(measure_fold)(task, splits, method, *fit) for fit in missing
    )
    done = {fit: results for fit, results in known.items() if results is not None}
    for fit, results in zip(missing, runs, strict=True):
        if journal is not None:
            journal.add(method, *fit, results)
        done[fit] = results
        progress(len(done), len(fits))
    return [result for fit in fits for result in done[fit]]
