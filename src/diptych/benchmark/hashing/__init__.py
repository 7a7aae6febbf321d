"""Hashing methods compared: what codes of each length reach, and what they cost."""

from diptych.benchmark.hashing.bit_budget import BITS, hashing_methods, run_bit_budget
from diptych.benchmark.hashing.bit_budget_report import BitBudgetReport, spread
from diptych.benchmark.hashing.code_lookup import codes_of, look_up
from diptych.benchmark.hashing.code_result import CodeResult
from diptych.benchmark.hashing.code_storage import CodeStorage, measure_storage
from diptych.benchmark.hashing.hashing_task import SETTING_TITLES, HashingTask
from diptych.benchmark.hashing.hashing_tasks import find_hashing_task, hashing_task_names

__all__ = [
    "BITS",
    "SETTING_TITLES",
    "BitBudgetReport",
    "CodeResult",
    "CodeStorage",
    "HashingTask",
    "codes_of",
    "find_hashing_task",
    "hashing_methods",
    "hashing_task_names",
    "look_up",
    "measure_storage",
    "run_bit_budget",
    "spread",
]
