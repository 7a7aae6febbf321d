"""The best rows by score."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray


def top_rows(scores: FloatArray, order: IntArray, k: int) -> IntArray:
    """Return the positions of the ``k`` largest scores, best first; equal scores by ``order``, smallest first.

    Scores of −∞ stand for what is left out and are never returned.

    >>> import numpy as np
    >>> from diptych.collection.top_rows import top_rows
    >>> top_rows(np.array([1.0, 3.0, 3.0, -np.inf]), np.array([0, 2, 1, 3]), 3)
    array([2, 1, 0])
    """
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > threshold)
        equal = np.flatnonzero(scores == threshold)
        places = k - len(above)
        if len(equal) > places:
            equal = equal[np.argsort(order[equal], kind="stable")[:places]]
        rows = np.concatenate([above, equal])
    else:
        rows = np.arange(len(scores))
    rows = rows[scores[rows] > -np.inf]
    return np.asarray(rows[np.lexsort((order[rows], -scores[rows]))])
