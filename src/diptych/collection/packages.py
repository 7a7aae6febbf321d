"""Modules of the extra ``search``, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from diptych.errors import MissingPackageError


def search_package(name: str) -> Any:
    """Return a module of the extra ``search``: ``faiss`` or ``watchfiles``.

    >>> search_package("no_such_module")
    Traceback (most recent call last):
    diptych.errors.MissingPackageError: searching needs a package that is not installed: pip install 'diptych[search]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError("searching", "'diptych[search]'") from None
