"""Ranking methods and networks compared, beside the values that Zhang et al. (2017) print."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from joblib import delayed

from diptych._version import __version__
from diptych.benchmark.published import published_scores
from diptych.benchmark.report import BenchmarkReport, spread
from diptych.benchmark.runner import LACKS_LABELS, Stage, measure_methods, select_methods, silent_stage
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
from diptych.errors import InvalidInputError
from diptych.protocols.journal import Journal, pairs_digest, run_noted, source_digest
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
class NeuralReport(BenchmarkReport):
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
        return spread(values) if values else None

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
    "benchmark/task.py",
    "benchmark/neural.py",
    "benchmark/studies/zhang.py",
    "benchmark/studies/zhang_measuring.py",
)


def neural_journal(folder: str | PathLike[str], task: NeuralTask, data: NeuralData) -> Journal[NeuralResult]:
    """Return the journal of a task: its name is a digest of the data and of the code that measures them."""
    reads: Reads = "features" if data.lacks("words") else "words"
    parts = (*data.parts("features"), *data.parts(reads))
    return Journal(
        folder,
        (source_digest(*_SOURCES), task.name, task.images, task.texts, *map(pairs_digest, parts)),
        read=lambda value: NeuralResult(**value),
        write=NeuralResult.as_json,
        prefix=f"{task.name}-",
    )


def fit_key(method: NeuralMethod, seed: int, epochs: int | None) -> str:
    """Return what tells one fit of a task from another."""
    parameters = {name: repr(value) for name, value in method.model.get_params().items() if name != "random_state"}
    return json.dumps([method.key, type(method.model).__name__, parameters, seed, epochs], sort_keys=True)


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
    chosen = select_methods("method of the comparison of networks", known, methods, as_declared=True)
    stage = stage or silent_stage
    if data is None:
        with stage(f"loading {task.name}"):
            data = task.load()
    loaded = data
    journal = None if folder is None else neural_journal(folder, task, loaded)

    def measure(_: str, method: NeuralMethod) -> list[NeuralResult]:
        calls = [
            (fit_key(method, seed, epochs), delayed(measure_fit)(task, loaded, method, seed, epochs))
            for seed in range(seeds if method.has_seed else 1)
        ]
        with stage(f"{task.name}: {method.name}") as progress:
            return run_noted(calls, journal, progress=progress)

    def why_not(method: NeuralMethod) -> str:
        lacks_labels = method.needs_labels and not task.has_classes and not method.own_classes
        return LACKS_LABELS if lacks_labels else loaded.lacks(method.reads)

    results, left_out = measure_methods(chosen, measure, why_not)
    return NeuralReport(task, known, results, left_out, epochs)
