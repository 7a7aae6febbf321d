"""What a run of the benchmark leaves on disk: one record for each task, method and fold."""

from diptych.benchmark.results.result_records import FORMAT, Record, ResultFolder, pack_results
from diptych.benchmark.results.results_difference import (
    MethodDifference,
    ResultsDifference,
    UnitDifference,
    compare_results,
)

__all__ = [
    "FORMAT",
    "MethodDifference",
    "Record",
    "ResultFolder",
    "ResultsDifference",
    "UnitDifference",
    "compare_results",
    "pack_results",
]
