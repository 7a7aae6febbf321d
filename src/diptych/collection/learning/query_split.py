"""Which queries are learned from, and which are kept back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.encoders.text.clean_query import clean_query


def word_groups(queries: Sequence[str]) -> IntArray:
    """Return a number for each query, the same for queries of the same words.

    Models of a log take such queries for one, so that learning from one and judging on the other would be cheating.

    >>> from diptych.collection.learning.query_split import word_groups
    >>> word_groups(["a red ball", "dogs", "balls, red", "the"]).tolist()
    [0, 1, 0, 2]
    """
    numbers: dict[tuple[str, ...], int] = {}
    keys = [tuple(sorted(set(clean_query(query)))) or (query,) for query in queries]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def drawn_share(groups: IntArray, eligible: BoolArray, share: float, seed: int) -> BoolArray:
    """Return a mask of a random share of the groups with an eligible query; whole groups are drawn.

    >>> import numpy as np
    >>> from diptych.collection.learning.query_split import drawn_share
    >>> drawn_share(np.array([0, 1, 0, 2]), np.array([True, True, True, False]), 0.5, seed=0).sum() in (1, 2)
    True
    """
    candidates = np.unique(groups[eligible])
    count = round(share * len(candidates))
    drawn = np.random.default_rng(seed).permutation(candidates)[:count]
    return np.isin(groups, drawn)
