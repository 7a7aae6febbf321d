"""Every method on every task and fold: declared, run anywhere, resumed at any time."""

from diptych.benchmark.running.catalogue import Catalogue
from diptych.benchmark.running.choosing import Choice, choose
from diptych.benchmark.running.cluster_engine import ClusterEngine
from diptych.benchmark.running.failure import Failure
from diptych.benchmark.running.features import Features
from diptych.benchmark.running.local_engine import LocalEngine
from diptych.benchmark.running.own_data import OwnData
from diptych.benchmark.running.plugin import Plugin
from diptych.benchmark.running.retrieval_task import RetrievalTask
from diptych.benchmark.running.run_benchmark import RunReport, run_benchmark
from diptych.benchmark.running.run_unit import run_unit
from diptych.benchmark.running.tasks import find_retrieval_task, retrieval_tasks
from diptych.benchmark.running.unit import Unit

__all__ = [
    "Catalogue",
    "Choice",
    "ClusterEngine",
    "Failure",
    "Features",
    "LocalEngine",
    "OwnData",
    "Plugin",
    "RetrievalTask",
    "RunReport",
    "Unit",
    "choose",
    "find_retrieval_task",
    "retrieval_tasks",
    "run_benchmark",
    "run_unit",
]
