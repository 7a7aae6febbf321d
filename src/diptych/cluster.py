"""A Dask cluster, for work that is divided into tasks: how to reach it, and what to say when nobody is there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from diptych.errors import InvalidInputError, MissingPackageError

_PATIENCE_SECONDS = 15


def connect(address: str) -> Any:
    """Return a client of the Dask scheduler at ``address``, such as tcp://host:8786; close it, or use it in ``with``.

    Workers need Diptych in the version of the driver and see the same files under the same names.
    """
    distributed = dask_distributed()
    try:
        return distributed.Client(address, timeout=_PATIENCE_SECONDS, set_as_default=False)
    except (OSError, ValueError) as problem:
        raise InvalidInputError(
            f"no Dask scheduler answers at {address} ({problem}); start one with `dask scheduler`, "
            "and its workers with `dask worker tcp://HOST:8786 --nthreads 1`"
        ) from None


def dask_distributed() -> Any:
    """Return the module ``distributed``, or say how to install it."""
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingPackageError("running on a cluster", "'diptych[cluster]'") from None
