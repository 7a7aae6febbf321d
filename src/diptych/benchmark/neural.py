"""Ranking methods and networks compared, beside the values that Zhang et al. (2017) print."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych._version import __version__
from diptych.benchmark.published import published_scores
from diptych.benchmark.studies.zhang import (
    NeuralData,
    NeuralMethod,
    NeuralTask,
    Reads,
    find_neural_task,
    neural_methods,
    neural_task_names,
)
from diptych.benchmark.studies.zhang_measuring import Illustration, NeuralResult, measure_fit
from diptych.errors import InvalidInputError, MissingPackageError, UnknownNameError
from diptych.protocols.tuning_journal import pairs_digest, source_digest
from diptych.space import DIRECTIONS, Direction

__all__ = [
    "Illustration",
    "NeuralData",
    "NeuralMethod",
    "NeuralReport",
    "NeuralResult",
    "NeuralTask",
    "find_neural_task",
    "neural_methods",
    "neural_task_names",
    "published_scores",
    "run_neural",
]


@dataclass(frozen=True)
class NeuralReport:
    """The results of every method and seed on one data set, beside those of the paper.

    ``methods`` are all that there are, measured or not; ``left_out`` says why one of those asked for is not measured.
    """

    task: NeuralTask
    methods: Mapping[str, NeuralMethod]
    results: tuple[NeuralResult, ...]
    left_out: dict[str, str]
    epochs: int | None = None

    @property
    def measured(self) -> tuple[str, ...]:
        """The methods with results, in the order of ``methods``."""
        found = {result.method for result in self.results}
        return tuple(key for key in self.methods if key in found)

    @property
    def shown(self) -> tuple[NeuralMethod, ...]:
        """The methods with results and those that the paper prints."""
        found = set(self.measured)
        return tuple(method for key, method in self.methods.items() if key in found or method.published)

    def select(self, method: str) -> list[NeuralResult]:
        """Return the results of a method, one for each seed."""
        return [result for result in self.results if result.method == method]

    def score(self, method: str, label: str, way: Direction) -> tuple[float, float] | None:
        """Return mean and standard deviation over seeds, None where the method was not measured."""
        values = [result.measures[label][way] for result in self.select(method)]
        if not values:
            return None
        return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    def published(self, method: NeuralMethod, label: str, way: Direction) -> float | None:
        """Return what the paper prints, on its own data, or None."""
        return published_scores(self.task.published_table).get(method.published, {}).get(label, {}).get(way)

    def chance(self, label: str, way: Direction) -> float:
        """Return the value of a ranking that prefers nothing."""
        return self.results[0].chance[label][way]

    def best(self) -> str:
        """Return the method with the best mean of both directions by the first measure."""
        label = self.task.measures[0].label

        def both(method: str) -> float:
            return float(np.mean([result.measures[label][way] for result in self.select(method) for way in DIRECTIONS]))

        return max(self.measured, key=both)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, with means and deviations over the seeds."""
        return {
            "format": "diptych-neural-benchmark",
            "task": self.task.name,
            "title": self.task.title,
            "notes": list(self.task.notes),
            "published": {
                "paper": 'Zhang et al., "Multi-networks joint learning for large-scale cross-modal retrieval", 2017',
                "table": self.task.published_table,
                "data": self.task.published_data,
                "same_data": self.task.same_data,
            },
            "epochs": self.epochs,
            "methods": [self._row(method) for method in self.shown],
            "left_out": self.left_out,
            "results": [result.as_json() for result in self.results],
            "diptych": __version__,
        }

    def _row(self, method: NeuralMethod) -> dict[str, Any]:
        results = self.select(method.key)
        return {
            "method": method.key,
            "name": method.name,
            "reads": method.reads,
            "seeds": [result.seed for result in results],
            "fit_seconds": [result.fit_seconds for result in results],
            "measures": {
                measure.label: {way: self._cell(method, measure.label, way) for way in DIRECTIONS}
                for measure in self.task.measures
            },
        }

    def _cell(self, method: NeuralMethod, label: str, way: Direction) -> dict[str, float | None]:
        score = self.score(method.key, label, way)
        return {
            "mean": None if score is None else score[0],
            "deviation": None if score is None else score[1],
            "chance": self.chance(label, way) if self.results else None,
            "published": self.published(method, label, way),
        }


# Everything that a number of the journal depends on, besides the features.
_SOURCES = (
    "arrays.py",
    "space.py",
    "metrics",
    "models",
    "protocols",
    "benchmark/neural.py",
    "benchmark/studies/zhang.py",
    "benchmark/studies/zhang_measuring.py",
)


class NeuralJournal:
    """A file with one line for each fit, so that the same comparison goes on where it was stopped.

    The name of the file is a digest of the data and of the code that measures them; a line that was cut off by a crash
    is ignored.
    """

    def __init__(self, folder: str | os.PathLike[str], task: NeuralTask, data: NeuralData) -> None:
        digest = hashlib.sha256("\0".join((source_digest(*_SOURCES), task.name, task.images, task.texts)).encode())
        reads: Reads = "features" if data.lacks("words") else "words"
        for part in (*data.parts("features"), *data.parts(reads)):
            digest.update(pairs_digest(part).encode())
        self.path = Path(folder) / f"{task.name}-{digest.hexdigest()[:32]}.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._done = self._read()
        except OSError as problem:
            raise InvalidInputError(f"{self.path} cannot be used ({problem}); choose another folder") from None

    def known(self, method: NeuralMethod, seed: int, epochs: int | None) -> NeuralResult | None:
        """Return the result of a fit that was measured before, or None."""
        return self._done.get(_key(method, seed, epochs))

    def add(self, method: NeuralMethod, seed: int, epochs: int | None, result: NeuralResult) -> None:
        """Append a fit; it is on disk when the call returns."""
        key = _key(method, seed, epochs)
        with self.path.open("a", encoding="utf-8") as stream:
            # A line of its own, even after one that was cut off.
            stream.write(f"\n{json.dumps({'fit': key, 'result': result.as_json()})}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._done[key] = result

    def _read(self) -> dict[str, NeuralResult]:
        done: dict[str, NeuralResult] = {}
        if not self.path.exists():
            return done
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry: dict[str, Any] = json.loads(line)
                done[str(entry["fit"])] = NeuralResult(**entry["result"])
            except (ValueError, KeyError, TypeError):
                continue
        return done


def _key(method: NeuralMethod, seed: int, epochs: int | None) -> str:
    parameters = {name: repr(value) for name, value in method.model.get_params().items() if name != "seed"}
    return json.dumps([method.key, type(method.model).__name__, parameters, seed, epochs], sort_keys=True)


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
        reason = _reason_left_out(task, data, method)
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


def _reason_left_out(task: NeuralTask, data: NeuralData, method: NeuralMethod) -> str:
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
            result = measure_fit(task, data, method, seed, epochs)
            if journal is not None:
                journal.add(method, seed, epochs, result)
        results.append(result)
        progress(len(results), len(drawn))
    return results
