"""Every method with every seed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike

from diptych.benchmark.neural.measuring import measure_once
from diptych.benchmark.neural.neural_data import NeuralData
from diptych.benchmark.neural.neural_journal import NeuralJournal
from diptych.benchmark.neural.neural_method import NeuralMethod
from diptych.benchmark.neural.neural_methods import neural_methods
from diptych.benchmark.neural.neural_report import NeuralReport
from diptych.benchmark.neural.neural_result import NeuralResult
from diptych.benchmark.neural.neural_task import NeuralTask
from diptych.errors import InvalidInputError, MissingPackageError, UnknownNameError

Progress = Callable[[int, int], None]
Stage = Callable[[str], AbstractContextManager[Progress]]


def run_neural(
    task: NeuralTask,
    *,
    methods: Collection[str] | None = None,
    seeds: int = 3,
    epochs: int | None = None,
    pixels: bool = False,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
    data: NeuralData | None = None,
) -> NeuralReport:
    """Measure methods on a task with the seeds 0, 1, …; methods without a seed are fitted once.

    Methods keep their defaults, so that nothing is chosen on test data; ``epochs`` replaces the number of passes of
    those that have one. Those that learn from labels are left out where there are none, those that read words where
    texts come as features, and those whose packages are not installed; the report says why. In ``folder`` every fit is
    noted, so that a run that was stopped goes on. ``stage(title)`` is entered around each long step and gives a
    function (done, total) to call. ``data`` are those of the task, where they are loaded already.
    """
    if seeds < 1:
        raise InvalidInputError(f"seeds must be at least 1, got {seeds}")
    if epochs is not None and epochs < 1:
        raise InvalidInputError(f"epochs must be at least 1, got {epochs}")
    known = neural_methods(pixels=pixels or any(name.endswith("-pixels") for name in methods or ()))
    chosen = _chosen(known, methods)
    stage = _silent if stage is None else stage
    if data is None:
        with stage(f"loading {task.name}"):
            data = task.load()
    journal = None if folder is None else NeuralJournal(folder, task, data)
    results: list[NeuralResult] = []
    left_out: dict[str, str] = {}
    for key, method in chosen.items():
        reason = _unfit(task, data, method)
        if reason:
            left_out[key] = reason
            continue
        try:
            with stage(f"{task.name}: {method.name}") as progress:
                results += _measured(task, data, method, seeds, epochs, journal, progress)
        except MissingPackageError as error:
            left_out[key] = str(error)
    return NeuralReport(task, known, tuple(results), left_out, epochs)


@contextmanager
def _silent(title: str) -> Iterator[Progress]:
    yield lambda done, total: None


def _chosen(known: dict[str, NeuralMethod], methods: Collection[str] | None) -> dict[str, NeuralMethod]:
    for name in methods or ():
        if name not in known:
            raise UnknownNameError("method of the comparison of networks", name, known)
    return known if not methods else {key: method for key, method in known.items() if key in methods}


def _unfit(task: NeuralTask, data: NeuralData, method: NeuralMethod) -> str:
    if method.needs_labels and not task.has_classes:
        return "learns from labels, of which there are none"
    return data.lacks(method.reads)


def _measured(
    task: NeuralTask,
    data: NeuralData,
    method: NeuralMethod,
    seeds: int,
    epochs: int | None,
    journal: NeuralJournal | None,
    progress: Progress,
) -> list[NeuralResult]:
    results = []
    drawn = range(seeds if method.has_seed else 1)
    for seed in drawn:
        result = None if journal is None else journal.known(method, seed, epochs)
        if result is None:
            result = measure_once(task, data, method, seed, epochs)
            if journal is not None:
                journal.add(method, seed, epochs, result)
        results.append(result)
        progress(len(results), len(drawn))
    return results
