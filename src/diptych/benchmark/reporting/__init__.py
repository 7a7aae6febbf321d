"""The report of a benchmark: leaderboards, tests, curves and samples, as one page that needs nothing else."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.benchmark.reporting.benchmark_report import Report as Report
    from diptych.benchmark.reporting.benchmark_report import build_report as build_report
    from diptych.benchmark.reporting.leaderboard import PublishedValue as PublishedValue
    from diptych.benchmark.reporting.leaderboard import as_csv as as_csv
    from diptych.benchmark.reporting.leaderboard import leaderboard_table as leaderboard_table
    from diptych.benchmark.reporting.leaderboard import published_beside as published_beside
    from diptych.benchmark.reporting.observations import Observation as Observation
    from diptych.benchmark.reporting.observations import check_observations as check_observations
    from diptych.benchmark.reporting.observations import orderings as orderings
    from diptych.benchmark.reporting.observations import seen_above_unseen as seen_above_unseen
    from diptych.benchmark.reporting.observations import trivial_solution as trivial_solution
    from diptych.benchmark.reporting.reproduction import reproduction_page as reproduction_page
    from diptych.benchmark.reporting.results import Experiment as Experiment
    from diptych.benchmark.reporting.results import MethodResults as MethodResults
    from diptych.benchmark.reporting.results import TaskResults as TaskResults
    from diptych.benchmark.reporting.results import find_experiments as find_experiments
    from diptych.benchmark.reporting.results import group_records as group_records
    from diptych.benchmark.reporting.samples import Sample as Sample
    from diptych.benchmark.reporting.samples import SampleSheet as SampleSheet
    from diptych.benchmark.reporting.samples import Shown as Shown
    from diptych.benchmark.reporting.samples import sample_sheets as sample_sheets
    from diptych.benchmark.reporting.significance import Comparison as Comparison
    from diptych.benchmark.reporting.significance import compare_all as compare_all
    from diptych.benchmark.reporting.significance import group_letters as group_letters
    from diptych.benchmark.reporting.significance import holm as holm
    from diptych.benchmark.reporting.significance import larger_than_zero as larger_than_zero
else:
    __getattr__, __all__ = declared_exports(__name__)
