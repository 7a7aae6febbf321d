"""Where to cut real outputs so that half of the training rows lie on each side."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray

_NOISE = 1e-5


def balanced_thresholds(outputs: FloatArray) -> FloatArray:
    """Return a median of each column that lies halfway between two different training values.

    The plain median of an odd number of rows is one of them, and which side of itself that row falls on would be a
    matter of rounding. The gap nearest to the middle is taken; a column that never varies is cut below its value.
    """
    ordered = np.sort(outputs.astype(np.float64, copy=False), axis=0)
    if len(ordered) < 2:
        return np.asarray(ordered[0] - 1)
    gaps = np.diff(ordered, axis=0)
    wide = gaps > _NOISE * np.abs(ordered).max(axis=0)
    # Gap i leaves i + 1 rows below it.
    imbalance = np.abs(np.arange(1, len(ordered)) - len(ordered) / 2)[:, None]
    chosen = np.where(wide, imbalance, np.inf).argmin(axis=0)
    columns = np.arange(ordered.shape[1])
    middles = ordered[chosen, columns] + gaps[chosen, columns] / 2
    return np.asarray(np.where(wide.any(axis=0), middles, ordered[0] - 1))
