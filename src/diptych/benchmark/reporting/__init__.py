"""The report of a benchmark: leaderboards, tests, curves and samples, as one page that needs nothing else."""

from diptych.benchmark.reporting.benchmark_report import Report, build_report
from diptych.benchmark.reporting.leaderboard import (
    PublishedValue,
    Table,
    as_csv,
    as_latex,
    as_markdown,
    leaderboard,
    published_beside,
)
from diptych.benchmark.reporting.observations import (
    Observation,
    check_observations,
    orderings,
    seen_above_unseen,
    trivial_solution,
)
from diptych.benchmark.reporting.reproduction import reproduction_page
from diptych.benchmark.reporting.results import Experiment, MethodResults, TaskResults, find_experiments, group_records
from diptych.benchmark.reporting.samples import Sample, SampleSheet, Shown, sample_sheets
from diptych.benchmark.reporting.significance import Comparison, compare_all, group_letters, holm, larger_than_zero

__all__ = [
    "Comparison",
    "Experiment",
    "MethodResults",
    "Observation",
    "PublishedValue",
    "Report",
    "Sample",
    "SampleSheet",
    "Shown",
    "Table",
    "TaskResults",
    "as_csv",
    "as_latex",
    "as_markdown",
    "build_report",
    "check_observations",
    "compare_all",
    "find_experiments",
    "group_letters",
    "group_records",
    "holm",
    "larger_than_zero",
    "leaderboard",
    "orderings",
    "published_beside",
    "reproduction_page",
    "sample_sheets",
    "seen_above_unseen",
    "trivial_solution",
]
