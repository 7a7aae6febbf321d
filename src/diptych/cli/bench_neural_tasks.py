"""The data that ``bench neural`` runs on."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.benchmark.neural import NeuralTask, find_neural_task, neural_task_names
from diptych.cli.stages import Stages
from diptych.errors import MissingDataError


def chosen_tasks(names: Sequence[str] | None, stages: Stages) -> list[NeuralTask]:
    """Return the tasks that were asked for, or those whose data are on this machine; say what the others lack."""
    if names:
        return [find_neural_task(name) for name in names]
    tasks = [find_neural_task(name) for name in neural_task_names()]
    here = [task for task in tasks if task.find().is_available]
    if not here:
        raise MissingDataError(
            "none of the data sets of this benchmark is on this machine; "
            "`diptych datasets get wikipedia` fetches the smallest"
        )
    for task in tasks:
        if task not in here:
            files = ", ".join(task.find().files)
            stages.note(
                f"not on this machine: {task.title}; needs {files} in {task.find().expected_folder}, see "
                f"`diptych datasets {task.dataset}`"
            )
    return here
