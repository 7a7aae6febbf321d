"""How far the queries at hand determine a mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.metrics.measure import check_cutoff
from diptych.metrics.paired_values import known_values, paired

_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class BootstrapInterval:
    """A mean with its bootstrap confidence interval.

    >>> from diptych.metrics import BootstrapInterval
    >>> str(BootstrapInterval(mean=0.25, low=0.24, high=0.26, level=0.95))
    '0.2500 [0.2400, 0.2600]'
    """

    mean: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"


def bootstrap_interval(
    values: ArrayLike, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> BootstrapInterval:
    """Return the mean of values per query and its percentile bootstrap interval.

    Queries are drawn with replacement ``draws`` times; the interval holds the middle ``level`` of the means (Efron &
    Tibshirani, "An Introduction to the Bootstrap", 1993). Skipped queries (NaN) are left out. Use it to say how much a
    reported mean depends on the queries that happened to be asked.

    >>> from diptych.metrics import bootstrap_interval
    >>> interval = bootstrap_interval([0.2, 0.4, 0.6, 0.8])
    >>> interval.low < interval.mean < interval.high
    True
    """
    return _interval(known_values(values, name="values"), level, draws, seed)


def bootstrap_difference(
    a: ArrayLike, b: ArrayLike, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> BootstrapInterval:
    """Return mean(a) − mean(b) of two methods on the same queries, with its percentile bootstrap interval.

    Queries are drawn in pairs, so what makes a query hard for both methods does not widen the interval. Queries that
    either method skipped (NaN) are left out. Use it beside :func:`~diptych.metrics.randomisation_test`: the test says
    whether there is a difference, the interval how large it may be.

    >>> from diptych.metrics import bootstrap_difference
    >>> interval = bootstrap_difference([0.3, 0.5, 0.7], [0.2, 0.4, 0.6])
    >>> round(interval.low, 6), round(interval.high, 6)
    (0.1, 0.1)
    """
    first, second = paired(a, b)
    return _interval(first - second, level, draws, seed)


def _interval(values: FloatArray, level: float, draws: int, seed: int) -> BootstrapInterval:
    if not 0 < level < 1:
        raise InvalidInputError(f"level must lie between 0 and 1, such as 0.95, got {level}")
    check_cutoff(draws, name="draws")
    generator = np.random.default_rng(seed)
    means = np.empty(draws)
    for block in row_blocks(draws, _BLOCK_ENTRIES // len(values)):
        chosen = generator.integers(0, len(values), size=(block.stop - block.start, len(values)))
        means[block] = values[chosen].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return BootstrapInterval(float(values.mean()), float(low), float(high), level)
