"""What a comparison of ranking methods and networks found, as values that print and serialise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych import __version__
from diptych.benchmark.neural.neural_method import NeuralMethod
from diptych.benchmark.neural.neural_result import NeuralResult
from diptych.benchmark.neural.neural_task import NeuralTask
from diptych.benchmark.neural.published_scores import published_scores
from diptych.space import DIRECTIONS, Direction


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
