"""Workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

from diptych.benchmark.results import Record
from diptych.benchmark.running.catalogue import Catalogue
from diptych.benchmark.running.failure import Failure
from diptych.benchmark.running.run_unit import run_unit
from diptych.benchmark.running.unit import Unit
from diptych.errors import InvalidInputError, MissingPackageError

_PATIENCE_SECONDS = 15


class ClusterEngine:
    """Runs units on the workers of a Dask scheduler.

    Workers need Diptych in the version of the driver and see the same data folder; results come back over the network.
    When a worker dies, the scheduler gives its units to others, and because a unit is decided by its declaration alone
    the results are the same.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, catalogue: Catalogue, units: Sequence[Unit]) -> Iterator[Record | Failure]:
        """Yield what each unit gave, in the order in which they end."""
        try:
            distributed = import_module("distributed")
        except ImportError:
            raise MissingPackageError("running on a cluster", "'diptych[cluster]'") from None
        try:
            client = distributed.Client(self.address, timeout=_PATIENCE_SECONDS, set_as_default=False)
        except (OSError, ValueError) as problem:
            raise InvalidInputError(
                f"no Dask scheduler answers at {self.address} ({problem}); start one with `dask scheduler`, "
                "and its workers with `dask worker tcp://HOST:8786 --nthreads 1`"
            ) from None
        with client:
            futures = {client.submit(run_unit, catalogue, unit, pure=False): unit for unit in units}
            for future in distributed.as_completed(list(futures), loop=client.loop):
                error = future.exception()
                yield future.result() if error is None else Failure.of(futures[future], error)
                future.release()
