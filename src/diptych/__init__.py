"""Diptych: search pictures with words and words with pictures, in one learned space."""

from typing import TYPE_CHECKING, Any

from diptych._version import __version__
from diptych.space import DIRECTIONS, Direction, IndexForm, Space

if TYPE_CHECKING:
    from diptych.collection import Collection
    from diptych.retriever import Retriever

__all__ = ["DIRECTIONS", "Collection", "Direction", "IndexForm", "Retriever", "Space", "__version__"]

# Imported when asked for: the program and every worker import this package, and few of them need these.
_LATER = {"Collection": "diptych.collection", "Retriever": "diptych.retriever"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
