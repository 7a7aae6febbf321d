"""What every relevance is: the relevant items of one query at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from diptych.arrays import FloatArray, IntArray


class Judgement(NamedTuple):
    """What is known about one query.

    ``items`` are the relevant gallery items, ``levels`` their positions in the relevance's ``grades`` (None when there
    is one grade), ``candidates`` the items to rank (None for the whole gallery).
    """

    items: IntArray
    levels: IntArray | None = None
    candidates: IntArray | None = None


class Relevance(ABC):
    """The relevance of a gallery to queries, asked query by query so that queries × gallery is never held.

    ``n_queries`` and ``n_gallery`` are the numbers of both, ``grades`` the positive grades, ascending. ``most`` is at
    least the number of relevant items of any query: memory is planned with it.

    >>> from diptych.metrics import SameLabel
    >>> SameLabel(["cat", "dog"], ["dog", "cat", "cat"]).judge(0).items
    array([1, 2])
    """

    n_queries: int
    n_gallery: int
    most: int
    grades: FloatArray = np.ones(1)

    @abstractmethod
    def judge(self, query: int) -> Judgement:
        """Return the relevant items of one query."""
