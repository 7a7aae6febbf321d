"""Tasks, studies, the runner, published results: how our numbers come about, beside the papers'."""

from diptych.benchmark.published import Published, PublishedTraining, published_map, published_training
from diptych.benchmark.run_study import Study, run_study, run_task
from diptych.benchmark.studies import find_study, study_names
from diptych.benchmark.studies.menon import find_task, task_names
from diptych.benchmark.task import Entry, Reference, Sensitivity, SensitivityCurve, Task
from diptych.benchmark.task_report import DistanceRow, MissingTask, Row, StudyReport, TaskReport

__all__ = [
    "DistanceRow",
    "Entry",
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
