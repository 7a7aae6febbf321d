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


def dealt_folds(groups: IntArray, eligible: BoolArray, n_folds: int, seed: int) -> IntArray:
    """Return the fold of each query, −1 for groups without an eligible query; a group is dealt as a whole.

    >>> import numpy as np
    >>> from diptych.collection.learning.query_split import dealt_folds
    >>> folds = dealt_folds(np.array([0, 1, 0, 2]), np.array([True, True, False, False]), 2, seed=0)
    >>> bool(folds[0] == folds[2]), sorted(folds[:2].tolist()), int(folds[3])
    (True, [0, 1], -1)
    """
    candidates = np.random.default_rng(seed).permutation(np.unique(groups[eligible]))
    fold_of_group = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    fold_of_group[candidates] = np.arange(len(candidates)) % n_folds
    return np.asarray(fold_of_group[groups])
