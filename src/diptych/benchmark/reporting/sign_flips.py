"""Sign flips: what paired values would look like if the two sides were the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError

TRIALS = 20_000

_ENUMERATE_UP_TO = 12
_BLOCK_ENTRIES = 1 << 20
# Rounding must not decide whether a flip that leaves the sum as it is counts as larger.
TOLERANCE = 1e-10


def is_enumerated(n_units: int) -> bool:
    """Tell whether all sign patterns of so many units are looked at, so that a p-value is exact."""
    return n_units <= _ENUMERATE_UP_TO


def sign_blocks(n_units: int, trials: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks of rows of ±1: all patterns where they are few, else ``trials`` random ones."""
    if is_enumerated(n_units):
        patterns = np.arange(1 << n_units)[:, None] >> np.arange(n_units)
        yield 1.0 - 2.0 * (patterns & 1)
        return
    generator = np.random.default_rng(seed)
    for block in row_blocks(trials, max(1, _BLOCK_ENTRIES // n_units)):
        shape = (block.stop - block.start, n_units)
        bits = np.unpackbits(np.frombuffer(generator.bytes(-(-shape[0] * shape[1] // 8)), dtype=np.uint8))
        yield 1.0 - 2.0 * bits[: shape[0] * shape[1]].reshape(shape)


def p_value_of(extreme: int, looked_at: int, n_units: int) -> float:
    """Return the share of flips as extreme as what was seen; what was seen counts as one of the random flips."""
    return extreme / looked_at if is_enumerated(n_units) else (extreme + 1) / (looked_at + 1)


def larger_than_zero(differences: ArrayLike, *, trials: int = TRIALS, seed: int = 0) -> float:
    """Return the p-value of "the mean of these paired differences is above zero", by flipping their signs.

    If the two sides of each pair were exchangeable, every pattern of signs would be as likely as the one that was seen.
    The test is one-sided: p = share of patterns with a sum at least as large. Up to 12 differences all patterns are
    enumerated, so that five folds can give p = 1/32 at best. Use it for folds, or for queries of two settings.

    >>> from diptych.benchmark.reporting import larger_than_zero
    >>> larger_than_zero([0.3, 0.1, 0.2, 0.2, 0.1])
    0.03125
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1:
        raise InvalidInputError(f"differences must be a list, got {values.ndim} dimensions")
    return float(each_larger_than_zero(values[:, None], trials=trials, seed=seed)[0])


def each_larger_than_zero(differences: FloatArray, *, trials: int = TRIALS, seed: int = 0) -> FloatArray:
    """Return `larger_than_zero` of every column, all under the same flips."""
    if not len(differences) or not np.isfinite(differences).all():
        raise InvalidInputError("differences must be finite numbers, and at least one")
    threshold = differences.sum(axis=0) - TOLERANCE * np.abs(differences).sum(axis=0)
    extreme, looked_at = np.zeros(differences.shape[1], dtype=np.int64), 0
    for signs in sign_blocks(len(differences), trials, seed):
        extreme += (signs @ differences >= threshold).sum(axis=0)
        looked_at += len(signs)
    return np.array([p_value_of(int(count), looked_at, len(differences)) for count in extreme])
