"""What a run of the benchmark leaves on disk: one record for each task, method and fold."""

from diptych.benchmark.results.packing import pack_results
from diptych.benchmark.results.record import FORMAT, Record
from diptych.benchmark.results.result_folder import ResultFolder

__all__ = ["FORMAT", "Record", "ResultFolder", "pack_results"]
