"""Tasks, the runner, published results: how our numbers come about, beside the papers'."""

from diptych.benchmark.entry import Entry, Reference
from diptych.benchmark.published import Published, published_map
from diptych.benchmark.report import DistanceRow, Row, TaskReport
from diptych.benchmark.runner import run_task
from diptych.benchmark.task import Task
from diptych.benchmark.tasks import find_task, task_names

__all__ = [
    "DistanceRow",
    "Entry",
    "Published",
    "Reference",
    "Row",
    "Task",
    "TaskReport",
    "find_task",
    "published_map",
    "run_task",
    "task_names",
]
