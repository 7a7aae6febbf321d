"""Diptych: search pictures with words and words with pictures, in one learned space."""

import os
from typing import TYPE_CHECKING

# ONNX Runtime reads it when it is imported; child processes inherit it.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from diptych._version import __version__
from diptych.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from diptych.collection import Collection
    from diptych.retriever import Retriever
    from diptych.space import DIRECTIONS, Direction, IndexForm, Space
else:
    # The program and every worker import this package, and few of them need these, or even NumPy.
    __getattr__ = lazy_exports(
        __name__,
        {
            "diptych.collection": "Collection",
            "diptych.retriever": "Retriever",
            "diptych.space": "DIRECTIONS Direction IndexForm Space",
        },
    )

__all__ = ["DIRECTIONS", "Collection", "Direction", "IndexForm", "Retriever", "Space", "__version__"]
