"""Which of two methods is better: randomisation test, bootstrap intervals, rank correlation, interleaved rankings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.metrics.measure import check_cutoff

Variant = Literal["half", "sign"]
_ENUMERATE_UP_TO = 20
_BLOCK_ENTRIES = 1 << 21
_PACKED_BLOCK_ENTRIES = 1 << 20
# Rounding must not decide whether a swap that leaves the difference as it is counts as larger.
_TOLERANCE = 1e-12
_BOOTSTRAP_BLOCK_ENTRIES = 1 << 20


def values_without_nan(values: ArrayLike, *, name: str) -> FloatArray:
    """Return ``values`` as float64 without the skipped queries (NaN)."""
    numbers = _as_values(values, name=name)
    return _not_empty(numbers[~np.isnan(numbers)])


def paired_values(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both lists of values as float64, without the queries that either method skipped (NaN)."""
    first, second = _as_values(a, name="a"), _as_values(b, name="b")
    if len(first) != len(second):
        raise InvalidInputError(
            f"a has {len(first)} values and b {len(second)}; a paired comparison needs the same queries in both"
        )
    known = ~(np.isnan(first) | np.isnan(second))
    return _not_empty(first[known]), _not_empty(second[known])


def _as_values(values: ArrayLike, *, name: str) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise InvalidInputError(f"{name} must be a list with one value per query, got {numbers.ndim} dimensions")
    if np.isinf(numbers).any():
        raise InvalidInputError(f"{name} holds infinity; values must be finite, or NaN for skipped queries")
    return numbers


def _not_empty(values: FloatArray) -> FloatArray:
    if not len(values):
        raise InvalidInputError("no query has a value; there is nothing to compare")
    return values


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
    first, second = paired_values(a, b)
    differences = first - second
    n_queries = len(differences)
    if variant == "half" and n_queries < 2:
        raise InvalidInputError("the half variant swaps half of the queries and needs at least 2 of them")
    observed = abs(float(differences.mean()))
    margin = _TOLERANCE * float(np.abs(differences).max())
    exact = variant == "sign" and n_queries <= _ENUMERATE_UP_TO
    trials = 1 << n_queries if exact else trials
    signs = (_swapped_halves if variant == "half" else sign_flips)(n_queries, trials, seed)
    extreme = 0
    for block in signs:
        swapped = np.abs(block @ differences) / n_queries
        larger = swapped > observed + margin if variant == "half" else swapped >= observed - margin
        extreme += int(larger.sum())
    p_value = flip_p_value(extreme, trials, exact=exact or variant == "half")
    # Nothing is strictly larger than no difference at all, yet equal values are no evidence.
    p_value = p_value if differences.any() else 1.0
    return RandomisationTest(float(differences.mean()), p_value, n_queries, trials, exact)


def sign_flips(
    n_units: int, trials: int, seed: int, *, enumerate_up_to: int = _ENUMERATE_UP_TO, packed: bool = False
) -> Iterator[FloatArray]:
    """Yield blocks of rows of ±1: all patterns where units are few, else ``trials`` random ones.

    ``packed`` takes eight signs from each random byte, which suits tests of many columns under the same flips; what is
    drawn differs from what is drawn without, so that a test keeps to one of them.
    """
    at_once = max(1, (_PACKED_BLOCK_ENTRIES if packed else _BLOCK_ENTRIES) // n_units)
    if n_units <= enumerate_up_to:
        for block in row_blocks(1 << n_units, at_once):
            patterns = np.arange(block.start, block.stop)[:, None] >> np.arange(n_units)
            yield 1.0 - 2.0 * (patterns & 1)
        return
    generator = np.random.default_rng(seed)
    for block in row_blocks(trials, at_once):
        shape = (block.stop - block.start, n_units)
        if packed:
            drawn = np.frombuffer(generator.bytes(-(-shape[0] * n_units // 8)), dtype=np.uint8)
            bits = np.unpackbits(drawn)[: shape[0] * n_units].reshape(shape)
        else:
            bits = generator.integers(0, 2, size=shape, dtype=np.int8)
        signs = bits * -2.0
        # In place: another array of this size takes as long to come by as to fill.
        signs += 1.0
        yield signs


def _swapped_halves(n_queries: int, trials: int, seed: int) -> Iterator[FloatArray]:
    generator = np.random.default_rng(seed)
    half = np.where(np.arange(n_queries) < n_queries // 2, -1.0, 1.0)
    for block in row_blocks(trials, _BLOCK_ENTRIES // n_queries):
        yield generator.permuted(np.tile(half, (block.stop - block.start, 1)), axis=1)


def flip_p_value(extreme: int, trials: int, *, exact: bool) -> float:
    """Return the share of flips as extreme as what was seen; what was seen counts as one of the random flips."""
    return extreme / trials if exact else (1 + extreme) / (trials + 1)


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
    return _interval(values_without_nan(values, name="values"), level, draws, seed)


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
    first, second = paired_values(a, b)
    return _interval(first - second, level, draws, seed)


@dataclass(frozen=True)
class DrawsDifference:
    """How two methods differ over several draws of their training data, asked the same queries.

    ``low`` and ``high`` bound the difference by a bootstrap over draws and queries, ``p_value`` is that of the paired t
    test over draws. Call a difference real where the interval leaves out 0 and the test agrees.

    >>> from diptych.metrics import DrawsDifference
    >>> DrawsDifference(difference=0.1, low=0.05, high=0.15, p_value=0.01).is_real()
    True
    """

    difference: float
    low: float
    high: float
    p_value: float

    def is_real(self, alpha: float = 0.05) -> bool:
        """Return True if the interval leaves out 0 and the p-value is at most ``alpha``."""
        return (self.low > 0 or self.high < 0) and self.p_value <= alpha


def draws_difference(
    a: ArrayLike, b: ArrayLike, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> DrawsDifference:
    """Return mean(a) − mean(b) of two methods, each with a row of values of the queries for each draw of training data.

    The bootstrap draws both anew, training draws and queries: every draw asks the same queries, so that one sample of
    queries serves all draws of a replicate. With five draws sign and rank tests cannot fall below 0.06; the t test can.

    >>> import numpy as np
    >>> from diptych.metrics import draws_difference
    >>> values = np.random.default_rng(0).random((5, 200))
    >>> found = draws_difference(values + 0.1, values)
    >>> round(found.low, 6), round(found.high, 6), found.is_real()
    (0.1, 0.1, True)
    """
    from scipy.stats import t

    first, second = (np.asarray(values, dtype=np.float64) for values in (a, b))
    if first.shape != second.shape or first.ndim != 2 or len(first) < 2:
        raise InvalidInputError(
            f"a and b need a row for each of at least 2 draws, and the same queries, got {first.shape}, {second.shape}"
        )
    differences = first - second
    n_rows, n_queries = differences.shape
    of_draws = differences.mean(axis=1)
    mean, error = float(of_draws.mean()), float(of_draws.std(ddof=1)) / np.sqrt(n_rows)
    certain = error <= _TOLERANCE * max(1.0, abs(mean))
    p_value = float(abs(mean) <= _TOLERANCE) if certain else float(2 * t.sf(abs(mean) / error, n_rows - 1))
    counts, weights = _resamples(n_rows, n_queries, draws, seed)
    means = np.einsum("rd,rd->r", weights, counts @ differences.T) / (n_rows * n_queries)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return DrawsDifference(mean, float(low), float(high), p_value)


@lru_cache(maxsize=2)
def _resamples(n_rows: int, n_queries: int, draws: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return how often each query and each row stands in each replicate; comparisons of one table share them."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(n_queries, np.full(n_queries, 1 / n_queries), size=draws)
    return counts.astype(np.float32), generator.multinomial(n_rows, np.full(n_rows, 1 / n_rows), size=draws) * 1.0


def _interval(values: FloatArray, level: float, draws: int, seed: int) -> BootstrapInterval:
    if not 0 < level < 1:
        raise InvalidInputError(f"level must lie between 0 and 1, such as 0.95, got {level}")
    check_cutoff(draws, name="draws")
    generator = np.random.default_rng(seed)
    means = np.empty(draws)
    for block in row_blocks(draws, _BOOTSTRAP_BLOCK_ENTRIES // len(values)):
        chosen = generator.integers(0, len(values), size=(block.stop - block.start, len(values)))
        means[block] = values[chosen].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return BootstrapInterval(float(values.mean()), float(low), float(high), level)


@dataclass(frozen=True)
class SpearmanCorrelation:
    """A rank correlation: ``p_value`` is how probable one as strong is where the two have nothing to do with another.

    >>> from diptych.metrics import SpearmanCorrelation
    >>> SpearmanCorrelation(coefficient=0.224, p_value=0.001, n_queries=1000).coefficient
    0.224
    """

    coefficient: float
    p_value: float
    n_queries: int


def spearman(a: ArrayLike, b: ArrayLike) -> SpearmanCorrelation:
    """Return Spearman's rank correlation of two values of the same queries.

    It is the correlation of the ranks, where equal values share the mean of their ranks; the short form with squared
    differences of ranks is wrong where there are ties, and lengths and visualness of queries are full of them. 1 says
    that either is an increasing function of the other, −1 a decreasing one. Queries with a missing value (NaN) are left
    out. Where all values of one side are equal there is no order to compare: NaN. The p-value is two-sided, from
    Student's t distribution, which is rough for fewer than ten queries.

    Reference: Spearman, "The proof and measurement of association between two things", American Journal of Psychology
    1904. Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018, compare with it
    how well visualness and the reciprocal of length predict whether a query is answered.

    >>> from diptych.metrics import spearman
    >>> round(spearman([1, 2, 2, 4], [10, 30, 20, 40]).coefficient, 4)
    0.9487
    """
    from scipy.stats import spearmanr

    first, second = paired_values(a, b)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return SpearmanCorrelation(float("nan"), float("nan"), len(first))
    found = spearmanr(first, second)
    # Rounding can leave the range of correlations; and two queries, always in some order, prove nothing.
    coefficient = float(np.clip(found.statistic, -1, 1))
    return SpearmanCorrelation(coefficient, float(found.pvalue) if len(first) > 2 else 1.0, len(first))


Team = Literal["a", "b"]
Item = TypeVar("Item", bound=Hashable)


def team_draft(a: Sequence[Item], b: Sequence[Item], k: int, *, seed: int | bytes) -> list[tuple[Item, Team]]:
    """Merge two rankings as two captains pick their teams, and return the first ``k`` items with their teams.

    In each round a fair coin says which ranking picks first; then each adds its best item that is not in the list yet.
    A click counts for the team of its item (see :func:`draft_winner`). Both teams are as large and stand as high, on
    average, so that a person who clicks without looking prefers neither, whatever the places are worth to them
    (Radlinski, Kurup and Joachims, "How does clickthrough data reflect retrieval quality?", CIKM 2008). Where one
    ranking has nothing more to add, the other goes on alone.

    The list for a larger ``k`` begins with that for a smaller one, if the rankings do and have at least ``k`` items or
    all there are: pages of one ``seed`` fit together. Use it to compare two methods on live traffic, where every person
    sees both; it needs far fewer searches than showing one method to each half of them (Chapelle et al., "Large-scale
    validation and analysis of interleaved search evaluation", TOIS 2012).

    >>> from diptych.metrics import team_draft
    >>> team_draft(["cat", "dog", "owl"], ["owl", "cat", "dog"], 3, seed=0)
    [('owl', 'b'), ('cat', 'a'), ('dog', 'b')]
    """
    if not isinstance(k, int) or k < 0:
        raise InvalidInputError(f"k is a number of items, got {k!r}")
    coin = random.Random(seed)
    drafted: dict[Item, Team] = {}
    places: dict[Team, int] = {"a": 0, "b": 0}
    rankings: dict[Team, Sequence[Item]] = {"a": a, "b": b}
    while len(drafted) < k:
        order: tuple[Team, Team] = ("a", "b") if coin.random() < 0.5 else ("b", "a")
        before = len(drafted)
        for team in order:
            ranking, place = rankings[team], places[team]
            while place < len(ranking) and ranking[place] in drafted:
                place += 1
            if place < len(ranking):
                drafted[ranking[place]] = team
            places[team] = place
        if len(drafted) == before:
            break
    return list(drafted.items())[:k]


def draft_winner(clicked: Iterable[Team]) -> Team | None:
    """Return the team with more of the clicked items of one search, or None where both have as many.

    Over many searches the sign test on the teams that won says whether one ranking is better; searches without a click
    and ties are left out.

    >>> from diptych.metrics import draft_winner
    >>> draft_winner(["a", "b", "b"]), draft_winner(["a", "b"])
    ('b', None)
    """
    counts = Counter(clicked)
    if not counts.keys() <= {"a", "b"}:
        raise InvalidInputError(f"teams are 'a' and 'b', got {sorted(map(str, counts))}")
    if counts["a"] == counts["b"]:
        return None
    return "a" if counts["a"] > counts["b"] else "b"
