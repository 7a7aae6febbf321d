"""Rows kept out of training, to see when it should stop."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray

_FEWEST, _MOST = 5, 2000


def held_out_rows(indicator: FloatArray, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return (rows to train on, rows held out), drawn at random so that no class leaves training altogether.

    A handful of rows says nothing and thousands say it too slowly: fewer than 5 are not held out at all, and never
    more than 2000.

    >>> import numpy as np
    >>> from diptych.models.neural.held_out import held_out_rows
    >>> train, held_out = held_out_rows(np.eye(2)[np.arange(50) % 2], 0.2, np.random.default_rng(0))
    >>> len(train), len(held_out)
    (40, 10)
    """
    wanted = min(int(share * len(indicator)), _MOST)
    left = indicator.sum(axis=0)
    held_out: list[int] = []
    for row in rng.permutation(len(indicator)) if wanted >= _FEWEST else ():
        if len(held_out) == wanted:
            break
        if (left[indicator[row] > 0] > 1).all():
            left -= indicator[row]
            held_out.append(int(row))
    chosen = np.zeros(len(indicator), dtype=bool)
    chosen[held_out] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
