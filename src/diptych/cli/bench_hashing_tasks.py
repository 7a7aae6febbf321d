"""The data that ``bench hashing`` runs on."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.benchmark.hashing import HashingTask, find_hashing_task, hashing_task_names
from diptych.cli.stages import Stages
from diptych.data import find_dataset
from diptych.errors import MissingDataError


def chosen_tasks(names: Sequence[str] | None, stages: Stages) -> list[HashingTask]:
    """Return the tasks that were asked for, or those whose data are on this machine."""
    if names:
        return [find_hashing_task(name) for name in names]
    tasks = [find_hashing_task(name) for name in hashing_task_names()]
    here = [task for task in tasks if find_dataset(task.dataset).is_available]
    if not here:
        raise MissingDataError(
            "none of the data sets of this benchmark is on this machine; "
            "`diptych datasets get wikipedia` fetches the smallest"
        )
    for task in tasks:
        if task not in here:
            stages.note(f"not on this machine: {task.title}")
    return here
