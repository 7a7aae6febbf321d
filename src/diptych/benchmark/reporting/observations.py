"""The three observations of Liu et al., tested on our results."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.benchmark.reporting.experiment import find_experiments
from diptych.benchmark.reporting.observation import Observation
from diptych.benchmark.reporting.orderings import orderings
from diptych.benchmark.reporting.seen_above_unseen import seen_above_unseen
from diptych.benchmark.reporting.task_results import TaskResults
from diptych.benchmark.reporting.trivial_solution import TRIVIAL, trivial_solution


def check_observations(tasks: Sequence[TaskResults]) -> tuple[Observation, ...]:
    """Test, wherever the results allow it, what Liu et al. observed under their extendable protocol.

    (1) Every method is better on seen classes; (2) the trivial solution, TS or deep-TS, competes on seen classes and
    loses rank on unseen ones; (3) CMC and MAP order the methods differently.

    >>> from diptych.benchmark.reporting import check_observations
    >>> check_observations([])
    ()
    """
    experiments = find_experiments(tasks)
    trivial = [
        trivial_solution(experiment, name)
        for experiment in experiments
        for name in TRIVIAL
        if experiment.seen.method(name) is not None
    ]
    compared = [task for task in tasks if task.setting in ("seen", "unseen")]
    return (*map(seen_above_unseen, experiments), *trivial, *map(orderings, compared))
