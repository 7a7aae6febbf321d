"""Histograms of small numbers, and the smallest of them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import IntArray

_CHUNK = 1 << 16


def count_small(values: NDArray[Any], n_values: int) -> IntArray:
    """Return the histogram of ``values`` in 0 … ``n_values`` − 1.

    Bytes are counted in pairs: one count per 16-bit word halves the work, and its two bytes are folded afterwards.
    """
    if values.dtype != np.uint8 or len(values) < _CHUNK or not values.flags.c_contiguous:
        return np.bincount(values, minlength=n_values)
    even = len(values) // 2 * 2
    pairs = np.zeros(1 << 16, dtype=np.int64)
    words = values[:even].view(np.uint16)
    for start in range(0, len(words), _CHUNK):
        counts = np.bincount(words[start : start + _CHUNK])
        pairs[: len(counts)] += counts
    table = pairs.reshape(256, 256)
    folded = table.sum(axis=0) + table.sum(axis=1) + np.bincount(values[even:], minlength=256)
    return cast(IntArray, folded[:n_values])


def smallest(values: NDArray[Any], k: int) -> IntArray:
    """Return the positions of the ``k`` smallest of ``values``, ascending, equal ones in their order.

    A histogram says below which value everything belongs to the answer and how many equal to it do; nothing but the
    answer is sorted.

    >>> import numpy as np
    >>> from diptych.codes.small_counts import smallest
    >>> smallest(np.array([3, 1, 2, 1, 2], dtype=np.uint8), 3)
    array([1, 3, 2])
    """
    if k >= len(values):
        return np.argsort(values, kind="stable")
    up_to = np.cumsum(count_small(values, int(values.max()) + 1))
    last = int(np.searchsorted(up_to, k))
    inside = np.flatnonzero(values <= last)
    # The answer's own order is by value then position, and what is beyond k are the last equal ones.
    return cast(IntArray, inside[np.argsort(values[inside], kind="stable")[:k]])
