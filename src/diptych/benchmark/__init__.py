"""Tasks and methods of the benchmark, the runner, its records, and what the papers print."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.benchmark.catalogue import Catalogue as Catalogue
    from diptych.benchmark.catalogue import OwnData as OwnData
    from diptych.benchmark.catalogue import Unit as Unit
    from diptych.benchmark.methods import Plugin as Plugin
    from diptych.benchmark.papers import declared_tasks as declared_tasks
    from diptych.benchmark.published import Published as Published
    from diptych.benchmark.published import published_map as published_map
    from diptych.benchmark.results import Record as Record
    from diptych.benchmark.results import ResultFolder as ResultFolder
    from diptych.benchmark.runner import Failure as Failure
    from diptych.benchmark.runner import RunReport as RunReport
    from diptych.benchmark.runner import choose as choose
    from diptych.benchmark.runner import run_benchmark as run_benchmark
    from diptych.benchmark.runner import run_unit as run_unit
    from diptych.benchmark.task import Features as Features
    from diptych.benchmark.task import Method as Method
    from diptych.benchmark.task import Task as Task
else:
    __getattr__, __all__ = declared_exports(__name__)
