"""Every method on every task and fold: declared, run anywhere, resumed at any time."""

from diptych.benchmark.running.run_benchmark import RunReport, run_benchmark
from diptych.benchmark.running.run_catalogue import Catalogue, OwnData, Unit
from diptych.benchmark.running.run_unit import Choice, Failure, choose, run_unit
from diptych.benchmark.studies.liu import RetrievalTask, retrieval_tasks
from diptych.benchmark.studies.method_entries import Plugin
from diptych.benchmark.task import Features

__all__ = [
    "Catalogue",
    "Choice",
    "Failure",
    "Features",
    "OwnData",
    "Plugin",
    "RetrievalTask",
    "RunReport",
    "Unit",
    "choose",
    "retrieval_tasks",
    "run_benchmark",
    "run_unit",
]
