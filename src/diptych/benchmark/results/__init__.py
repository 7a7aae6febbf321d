"""What a run of the benchmark leaves on disk: one record for each task, method and fold."""

from diptych.benchmark.results.difference import (
    MethodDifference,
    ResultsDifference,
    UnitDifference,
    compare_results,
)
from diptych.benchmark.results.packing import pack_results
from diptych.benchmark.results.record import FORMAT, Record
from diptych.benchmark.results.result_folder import ResultFolder

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
