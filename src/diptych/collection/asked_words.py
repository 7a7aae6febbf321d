"""Words that are asked for, as points."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from typing import NamedTuple, TypeVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.contract import PointSource

PointSourceT = TypeVar("PointSourceT", bound=PointSource)

_REMEMBERED = 1024


class WordPoint(NamedTuple):
    """The point of some words, whether the retriever knows none of them, and the features the point was made from."""

    point: AnyArray
    is_unknown: bool
    features: FloatArray


class AskedWords:
    """Turns the words of queries into points and remembers the last ones, in memory alone.

    The features of pictures and captions are kept on disk because they will be needed again. What somebody asks for is
    nobody else's business, and there is no end of it.
    """

    def __init__(self, retriever: PointSource) -> None:
        self._retriever = untraced(retriever)
        self._lock = threading.Lock()
        self._known: OrderedDict[str, WordPoint] = OrderedDict()

    def point(self, words: str) -> WordPoint:
        """Return the point of some words."""
        with self._lock:
            known = self._known.get(words)
            if known is not None:
                self._known.move_to_end(words)
                return known
        features = self._retriever.text_features([words])
        made = WordPoint(self._retriever.texts_to_points(features), not np.any(features), features)
        with self._lock:
            self._known[words] = made
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return made


def untraced(retriever: PointSourceT) -> PointSourceT:
    """Return the same retriever without a cache on disk."""
    if not getattr(retriever, "cache", False):
        return retriever
    alike = copy.copy(retriever)
    vars(alike)["cache"] = False
    return alike
