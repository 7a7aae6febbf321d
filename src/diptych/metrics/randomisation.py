"""Is the difference between two methods more than luck?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.metrics.measure import check_cutoff
from diptych.metrics.paired_values import paired

Variant = Literal["half", "sign"]

_ENUMERATE_UP_TO = 20
_BLOCK_ENTRIES = 1 << 21
# Rounding must not decide whether a swap that leaves the difference as it is counts as larger.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class RandomisationTest:
    """The outcome of a paired randomisation test: ``difference`` is mean(a) − mean(b).

    ``exact`` tells that all sign patterns were enumerated, ``trials`` how many swaps were looked at.

    >>> from diptych.metrics import RandomisationTest
    >>> RandomisationTest(difference=0.1, p_value=0.03, n_queries=50, trials=1000, exact=False).p_value
    0.03
    """

    difference: float
    p_value: float
    n_queries: int
    trials: int
    exact: bool


def randomisation_test(
    a: ArrayLike, b: ArrayLike, *, variant: Variant = "sign", trials: int = 100_000, seed: int = 0
) -> RandomisationTest:
    """Test whether two methods differ on the same queries, by swapping their values per query at random.

    If the methods were the same, swapping the two values of a query would change nothing. The p-value is the share of
    random swaps that give a mean difference as large as the observed one (Smucker et al., "A comparison of statistical
    significance tests for information retrieval evaluation", CIKM 2007). Two variants:

    * ``sign``: each query is swapped with probability ½, p = (1 + #{≥}) / (trials + 1); with up to 20 queries all sign
      patterns are enumerated and p is exact;
    * ``half``: a random half of the queries (rounded down) is swapped, p = #{>} / trials, as in Dong et al.,
      "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018.
      Where all values are equal p is 1.

    Queries that either method skipped (NaN) are left out. Use it on ``evaluation.values[measure]`` of two methods.

    >>> from diptych.metrics import randomisation_test
    >>> randomisation_test([0.5, 0.6, 0.7, 0.4], [0.4, 0.5, 0.5, 0.3]).p_value
    0.125
    """
    if variant not in get_args(Variant):
        raise InvalidInputError(f"variant must be one of {', '.join(get_args(Variant))}, got {variant!r}")
    check_cutoff(trials, name="trials")
    first, second = paired(a, b)
    differences = first - second
    n_queries = len(differences)
    if variant == "half" and n_queries < 2:
        raise InvalidInputError("the half variant swaps half of the queries and needs at least 2 of them")
    observed = abs(float(differences.mean()))
    margin = _TOLERANCE * float(np.abs(differences).max())
    exact = variant == "sign" and n_queries <= _ENUMERATE_UP_TO
    trials = 1 << n_queries if exact else trials
    signs = _all_signs(n_queries) if exact else _random_signs(variant, n_queries, trials, seed)
    extreme = 0
    for block in signs:
        swapped = np.abs(block @ differences) / n_queries
        larger = swapped > observed + margin if variant == "half" else swapped >= observed - margin
        extreme += int(larger.sum())
    p_value = extreme / trials if exact or variant == "half" else (1 + extreme) / (trials + 1)
    # Nothing is strictly larger than no difference at all, yet equal values are no evidence.
    p_value = p_value if differences.any() else 1.0
    return RandomisationTest(float(differences.mean()), p_value, n_queries, trials, exact)


def _all_signs(n_queries: int) -> Iterator[FloatArray]:
    for block in row_blocks(1 << n_queries, _BLOCK_ENTRIES // n_queries):
        patterns = np.arange(block.start, block.stop)[:, None] >> np.arange(n_queries)
        yield 1.0 - 2.0 * (patterns & 1)


def _random_signs(variant: Variant, n_queries: int, trials: int, seed: int) -> Iterator[FloatArray]:
    generator = np.random.default_rng(seed)
    half = np.where(np.arange(n_queries) < n_queries // 2, -1.0, 1.0)
    for block in row_blocks(trials, _BLOCK_ENTRIES // n_queries):
        n_rows = block.stop - block.start
        if variant == "half":
            yield generator.permuted(np.tile(half, (n_rows, 1)), axis=1)
        else:
            yield 1.0 - 2.0 * generator.integers(0, 2, size=(n_rows, n_queries), dtype=np.int8)
