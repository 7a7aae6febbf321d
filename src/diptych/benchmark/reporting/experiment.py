"""The same methods on classes they learned and on classes they did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diptych.benchmark.reporting.method_results import MethodResults
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

    @property
    def pairs(self) -> tuple[tuple[MethodResults, MethodResults], ...]:
        """Every method that learns and was run on all folds of both tasks, as (seen, unseen), best on seen first."""
        found = []
        for method in self.seen.complete:
            other = self.unseen.method(method.name)
            if method.name not in CHANCE_METHODS and other is not None and other.folds == method.folds:
                found.append((method, other))
        return tuple(found)


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
