"""Tasks, studies, the runner, published results: how our numbers come about, beside the papers'."""

from diptych.benchmark.entry import Entry, Reference
from diptych.benchmark.published import Published, PublishedTraining, published_map, published_training
from diptych.benchmark.report import DistanceRow, Row, TaskReport
from diptych.benchmark.runner import run_task
from diptych.benchmark.sensitivity import Sensitivity, SensitivityCurve
from diptych.benchmark.studies import find_study, study_names
from diptych.benchmark.study import Study, run_study
from diptych.benchmark.study_report import MissingTask, StudyReport
from diptych.benchmark.task import Task
from diptych.benchmark.tasks import find_task, task_names

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
