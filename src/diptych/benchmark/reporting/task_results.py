"""All methods of one task, and the same methods on classes they learned and on classes they did not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.method_results import AVERAGE_PRECISION, MethodResults, mean_by_query, query_shares
from diptych.benchmark.reporting.significance import Comparison, compare_all, group_letters
from diptych.benchmark.results import Record

CHANCE_METHODS = frozenset({"random"})


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

    def comparable_methods(self, measure: str = AVERAGE_PRECISION) -> tuple[MethodResults, ...]:
        """Return the complete methods whose records keep this measure for every query."""
        return tuple(method for method in self.complete if method.has_per_query(measure))

    def comparison(self, measure: str = AVERAGE_PRECISION) -> Comparison | None:
        """Return the tests of all pairs of the compared methods; None where there are none."""
        if measure not in self._comparisons:
            shares = query_shares(self.comparable_methods(measure), measure)
            self._comparisons[measure] = None if shares is None else compare_all(shares)
        return self._comparisons[measure]

    @cached_property
    def letters(self) -> dict[str, str]:
        """Letters for every compared method; those that share one cannot be told apart."""
        compared = self.comparison()
        if compared is None:
            return {}
        letters = group_letters(compared.differs())
        return {method.name: letter for method, letter in zip(self.comparable_methods(), letters, strict=True)}

    @cached_property
    def chance(self) -> float:
        """The chance level of MAP, over all folds and both directions."""
        return float(np.mean([method.chance() for method in (self.complete or self.methods)]))

    def method(self, name: str) -> MethodResults | None:
        """Return the method of that short name, or None."""
        return next((method for method in self.methods if method.name == name), None)

    def all_have_measure(self, measure: str) -> bool:
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


@dataclass(frozen=True, eq=False)
class Experiment:
    """The seen and the unseen task that share data, features and folds."""

    seen: TaskResults
    unseen: TaskResults

    @property
    def title(self) -> str:
        """The data set for a reader."""
        return self.seen.dataset.replace("_", " ").capitalize()

    @property
    def folds(self) -> tuple[int, ...]:
        """The folds of both tasks."""
        return tuple(fold for fold in self.seen.folds if fold in self.unseen.folds)

    @cached_property
    def method_pairs(self) -> tuple[tuple[MethodResults, MethodResults], ...]:
        """Every method that learns and was run on all folds of both tasks, as (seen, unseen), best on seen first."""
        learning = [method for method in self.seen.complete if method.name not in CHANCE_METHODS]
        pairs = [(method, self.unseen.method(method.name)) for method in learning]
        return tuple((method, other) for method, other in pairs if other is not None and other.folds == method.folds)

    @cached_property
    def by_query(self) -> tuple[FloatArray, FloatArray] | None:
        """AP above chance, queries × methods, on seen and on unseen classes.

        The queries are those whose class was learned in some folds and not in others; a row is the same query in both.
        None where there is none, or records keep no values per query.
        """
        settings = [[mean_by_query(pair[side], AVERAGE_PRECISION) for pair in self.method_pairs] for side in (0, 1)]
        tables = [table for setting in settings for table in setting]
        shared = sorted(set.intersection(*map(set, tables))) if tables else []
        if not shared:
            return None
        seen, unseen = (np.array([[table[query] for table in setting] for query in shared]) for setting in settings)
        return seen, unseen


def find_experiments(tasks: Sequence[TaskResults]) -> tuple[Experiment, ...]:
    """Pair the seen and the unseen task of every experiment.

    >>> from diptych.benchmark.reporting import find_experiments
    >>> find_experiments([])
    ()
    """
    by_place = {(task.family, task.setting): task for task in tasks}
    return tuple(
        Experiment(task, by_place[family, "unseen"])
        for (family, setting), task in by_place.items()
        if setting == "seen" and (family, "unseen") in by_place
    )
