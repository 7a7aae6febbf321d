"""The same methods on classes they learned and on classes they did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.method_results import AVERAGE_PRECISION, MethodResults
from diptych.benchmark.reporting.query_shares import mean_by_query
from diptych.benchmark.reporting.task_results import TaskResults

CHANCE_METHODS = frozenset({"random"})


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
    def pairs(self) -> tuple[tuple[MethodResults, MethodResults], ...]:
        """Every method that learns and was run on all folds of both tasks, as (seen, unseen), best on seen first."""
        found = []
        for method in self.seen.complete:
            other = self.unseen.method(method.name)
            if method.name not in CHANCE_METHODS and other is not None and other.folds == method.folds:
                found.append((method, other))
        return tuple(found)

    @cached_property
    def by_query(self) -> tuple[FloatArray, FloatArray] | None:
        """AP above chance, queries × methods, on seen and on unseen classes.

        The queries are those whose class was learned in some folds and not in others; a row is the same query in both.
        None where there is none, or records keep no values per query.
        """
        settings = [[mean_by_query(pair[side], AVERAGE_PRECISION) for pair in self.pairs] for side in (0, 1)]
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
