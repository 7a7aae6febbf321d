"""All methods of one task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.benchmark.reporting.comparison import Comparison, compare_all
from diptych.benchmark.reporting.letters import group_letters
from diptych.benchmark.reporting.method_results import AVERAGE_PRECISION, MethodResults
from diptych.benchmark.reporting.query_shares import query_shares
from diptych.benchmark.results import Record


@dataclass(frozen=True, eq=False)
class TaskResults:
    """The methods of one task, best first, and what can be said about the differences between them."""

    methods: tuple[MethodResults, ...]

    @property
    def _first(self) -> Record:
        return self.methods[0].records[0]

    @property
    def name(self) -> str:
        """The name of the task."""
        return self._first.task

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self._first.dataset

    @property
    def setting(self) -> str:
        """``seen``, ``unseen`` or ``standard``."""
        return self._first.setting

    @property
    def features(self) -> str:
        """What pictures and texts were described by."""
        return self._first.features

    @property
    def family(self) -> str:
        """The name without its setting, which the seen and the unseen task of one experiment share."""
        return self.name.removesuffix(f"-{self.setting}")

    @property
    def title(self) -> str:
        """The task for a reader."""
        dataset = self.dataset.replace("_", " ").capitalize()
        return dataset if self.setting == "standard" else f"{dataset}, {self.setting} classes"

    @cached_property
    def folds(self) -> tuple[int, ...]:
        """The folds that at least one method was run on."""
        return tuple(sorted({fold for method in self.methods for fold in method.folds}))

    @cached_property
    def complete(self) -> tuple[MethodResults, ...]:
        """The methods that were run on every fold, best first; only these are compared."""
        return tuple(method for method in self.methods if method.folds == self.folds)

    def compared(self, measure: str = AVERAGE_PRECISION) -> tuple[MethodResults, ...]:
        """Return the complete methods whose records keep this measure for every query."""
        return tuple(method for method in self.complete if method.keeps(measure))

    def comparison(self, measure: str = AVERAGE_PRECISION) -> Comparison | None:
        """Return the tests of all pairs of the compared methods; None where there are none."""
        if measure not in self._comparisons:
            shares = query_shares(self.compared(measure), measure)
            self._comparisons[measure] = None if shares is None else compare_all(shares)
        return self._comparisons[measure]

    @cached_property
    def letters(self) -> dict[str, str]:
        """Letters for every compared method; those that share one cannot be told apart."""
        compared = self.comparison()
        if compared is None:
            return {}
        letters = group_letters(compared.differs())
        return {method.name: letter for method, letter in zip(self.compared(), letters, strict=True)}

    @cached_property
    def chance(self) -> float:
        """The chance level of MAP, over all folds and both directions."""
        return float(np.mean([method.chance() for method in (self.complete or self.methods)]))

    def method(self, name: str) -> MethodResults | None:
        """Return the method of that short name, or None."""
        return next((method for method in self.methods if method.name == name), None)

    def shares(self, measure: str) -> bool:
        """Tell whether every method has this measure."""
        return all(measure in record.measures for method in self.methods for record in method.records)

    @cached_property
    def _comparisons(self) -> dict[str, Comparison | None]:
        return {}


def group_records(records: Iterable[Record]) -> tuple[TaskResults, ...]:
    """Sort records by task and method; tasks by name, methods from the best to the worst.

    >>> from diptych.benchmark.reporting import group_records
    >>> group_records([])
    ()
    """
    tasks: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        tasks.setdefault(record.task, {}).setdefault(record.method, []).append(record)
    return tuple(TaskResults(_best_first(tasks[name])) for name in sorted(tasks))


def _best_first(methods: dict[str, list[Record]]) -> tuple[MethodResults, ...]:
    results = [MethodResults(tuple(sorted(found, key=lambda record: record.fold))) for found in methods.values()]
    return tuple(sorted(results, key=lambda method: (-method.mean(), method.name)))
