"""Arrow and Parquet, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from diptych.errors import MissingPackageError


def arrow_package(purpose: str) -> Any:
    """Return the module ``pyarrow`` with ``pyarrow.parquet`` loaded, or say what to install for a purpose."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise MissingPackageError(purpose, "'diptych[parquet]'") from error
