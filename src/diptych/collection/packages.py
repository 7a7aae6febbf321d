"""The packages that only searching needs, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from diptych.errors import MissingPackageError


def search_package(name: str) -> Any:
    """Return the module ``lancedb`` (durable tables), ``pyarrow`` (columns) or ``faiss`` (approximate search).

    >>> from diptych.collection.packages import search_package
    >>> search_package("no_such_module")
    Traceback (most recent call last):
    diptych.errors.MissingPackageError: searching needs a package that is not installed: pip install 'diptych[search]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError("searching", "'diptych[search]'") from None
