"""Tasks, studies, the runner, published results: how our numbers come about, beside the papers'."""

from diptych.benchmark.published import Published, PublishedTraining, published_map, published_training
from diptych.benchmark.runner import DistanceRow, MissingTask, Row, Study, StudyReport, TaskReport, run_study, run_task
from diptych.benchmark.studies import find_study, find_task, study_names, task_names
from diptych.benchmark.task import Entry, Method, Reference, Sensitivity, SensitivityCurve, Task

__all__ = [
    "DistanceRow",
    "Entry",
    "Method",
    "MissingTask",
    "Published",
    "PublishedTraining",
    "Reference",
    "Row",
    "Sensitivity",
    "SensitivityCurve",
    "Study",
    "StudyReport",
    "Task",
    "TaskReport",
    "find_study",
    "find_task",
    "published_map",
    "published_training",
    "run_study",
    "run_task",
    "study_names",
    "task_names",
]
