"""All methods of a task against each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.benchmark.reporting.holm import holm
from diptych.benchmark.reporting.sign_flips import TOLERANCE, TRIALS, p_value_of, sign_blocks
from diptych.errors import InvalidInputError

LEVEL = 0.05
# A random p-value cannot be smaller than one over the trials; it must be able to pass Holm's first step.
_TRIALS_PER_PAIR = 40


@dataclass(frozen=True, eq=False)
class Comparison:
    """Mean differences of every pair of methods, their p-values, and these corrected for the number of pairs.

    All are square, methods × methods; differences are row minus column.
    """

    differences: FloatArray
    p_values: FloatArray
    adjusted: FloatArray

    def differs(self, level: float = LEVEL) -> BoolArray:
        """Tell for every pair of methods whether they can be told apart at this level."""
        return self.adjusted <= level


def compare_all(shares: FloatArray, *, trials: int = TRIALS, seed: int = 0) -> Comparison:
    """Test every pair of methods by one randomisation test, and correct for the number of pairs by Holm.

    ``shares`` is units × methods: what each unit (a query) contributes to the mean of each method, so that columns sum
    to the means. If two methods were the same, swapping their values for any unit would change nothing (Smucker et al.,
    "A comparison of statistical significance tests for information retrieval evaluation", CIKM 2007). All pairs are
    looked at under the same swaps, which makes one matrix product of what would be thousands of tests. Where there are
    many pairs, ``trials`` grows, so that a clear difference can pass the correction.

    >>> import numpy as np
    >>> from diptych.benchmark.reporting import compare_all
    >>> good, same, bad = np.full(10, 0.05), np.full(10, 0.05), np.linspace(0.01, 0.03, 10)
    >>> result = compare_all(np.stack([good, same, bad], axis=1))
    >>> result.differs().astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    """
    if shares.ndim != 2 or 0 in shares.shape or not np.isfinite(shares).all():
        raise InvalidInputError("shares must be a matrix of finite numbers, units × methods, and not empty")
    n_methods = shares.shape[1]
    pairs = list(combinations(range(n_methods), 2))
    means = shares.sum(axis=0)
    differences = means[:, None] - means[None, :]
    p_values = np.ones((n_methods, n_methods))
    adjusted = np.ones((n_methods, n_methods))
    if pairs:
        first, second = np.array(pairs, dtype=np.intp).T
        found = _p_values(shares, first, second, max(trials, _TRIALS_PER_PAIR * len(pairs)), seed)
        for square, values in ((p_values, found), (adjusted, holm(found))):
            square[first, second] = square[second, first] = values
    return Comparison(differences, p_values, adjusted)


def _p_values(shares: FloatArray, first: IntArray, second: IntArray, trials: int, seed: int) -> FloatArray:
    n_units = len(shares)
    gaps = shares[:, first] - shares[:, second]
    threshold = np.abs(gaps.sum(axis=0)) - TOLERANCE * np.abs(gaps).sum(axis=0)
    extreme, looked_at = np.zeros(len(first), dtype=np.int64), 0
    for signs in sign_blocks(n_units, trials, seed):
        sums = signs @ shares
        extreme += (np.abs(sums[:, first] - sums[:, second]) >= threshold).sum(axis=0)
        looked_at += len(signs)
    return np.array([p_value_of(int(count), looked_at, n_units) for count in extreme])
