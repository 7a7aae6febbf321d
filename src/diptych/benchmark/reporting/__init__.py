"""The report of a benchmark: leaderboards, tests, curves and samples, as one page that needs nothing else."""

from diptych.benchmark.reporting.comparison import Comparison, compare_all
from diptych.benchmark.reporting.experiment import Experiment, find_experiments
from diptych.benchmark.reporting.exports import as_csv, as_latex, as_markdown
from diptych.benchmark.reporting.holm import holm
from diptych.benchmark.reporting.leaderboard import leaderboard
from diptych.benchmark.reporting.letters import group_letters
from diptych.benchmark.reporting.method_results import MethodResults
from diptych.benchmark.reporting.observation import Observation
from diptych.benchmark.reporting.observations import check_observations
from diptych.benchmark.reporting.orderings import orderings
from diptych.benchmark.reporting.published_beside import PublishedValue, published_beside
from diptych.benchmark.reporting.report import Report, build_report
from diptych.benchmark.reporting.sample import Sample, SampleSheet, Shown
from diptych.benchmark.reporting.sampling import sample_sheets
from diptych.benchmark.reporting.seen_above_unseen import seen_above_unseen
from diptych.benchmark.reporting.sign_flips import larger_than_zero
from diptych.benchmark.reporting.table import Table
from diptych.benchmark.reporting.task_results import TaskResults, group_records
from diptych.benchmark.reporting.trivial_solution import trivial_solution

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
    "sample_sheets",
    "seen_above_unseen",
    "trivial_solution",
]
