"""Ranking methods and networks compared, beside the values that Zhang et al. (2017) print."""

from diptych.benchmark.neural.illustration import Illustration
from diptych.benchmark.neural.neural_data import NeuralData
from diptych.benchmark.neural.neural_method import NeuralMethod
from diptych.benchmark.neural.neural_methods import neural_methods
from diptych.benchmark.neural.neural_report import NeuralReport
from diptych.benchmark.neural.neural_result import NeuralResult
from diptych.benchmark.neural.neural_run import run_neural
from diptych.benchmark.neural.neural_task import NeuralTask
from diptych.benchmark.neural.neural_tasks import find_neural_task, neural_task_names
from diptych.benchmark.neural.published_scores import published_scores

__all__ = [
    "Illustration",
    "NeuralData",
    "NeuralMethod",
    "NeuralReport",
    "NeuralResult",
    "NeuralTask",
    "find_neural_task",
    "neural_methods",
    "neural_task_names",
    "published_scores",
    "run_neural",
]
