"""Which methods can be told apart: sign flips, all pairs at once, Holm's correction, and letters for groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import BoolArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.metrics.significance import flip_p_value, sign_flips

TRIALS = 20_000
_ENUMERATE_UP_TO = 12

# Rounding must not decide whether a flip that leaves the sum as it is counts as larger.
TOLERANCE = 1e-10
LEVEL = 0.05

# A random p-value cannot be smaller than one over the trials; it must be able to pass Holm's first step.
_TRIALS_PER_PAIR = 40


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values adjusted for how many there are: reject those below α, and a false rejection is rarer than α.

    With p₍₁₎ ≤ … ≤ p₍ₘ₎ the adjusted value of p₍ᵢ₎ is max over j ≤ i of min(1, (m − j + 1)·p₍ⱼ₎) (Holm, "A simple
    sequentially rejective multiple test procedure", Scandinavian Journal of Statistics, 1979). It holds however the
    tests depend on each other, and rejects whatever Bonferroni's correction rejects. Use it whenever a table shows more
    than one test.

    >>> from diptych.benchmark.reporting import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError("p-values must be a list of numbers from 0 to 1")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    stepped = values[order] * np.arange(len(values), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def _p_values(n_units: int, trials: int, seed: int, is_extreme: Callable[[FloatArray], BoolArray]) -> FloatArray:
    """Return a p-value for each column of ``is_extreme``, which tells which flips go as far as what was seen."""
    flips = sign_flips(n_units, trials, seed, enumerate_up_to=_ENUMERATE_UP_TO, packed=True)
    counts = [(is_extreme(signs).sum(axis=0), len(signs)) for signs in flips]
    extreme, looked_at = np.sum([found for found, _ in counts], axis=0), sum(size for _, size in counts)
    exact = n_units <= _ENUMERATE_UP_TO
    return np.array([flip_p_value(int(found), looked_at, exact=exact) for found in extreme])


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
    return _p_values(len(differences), trials, seed, lambda signs: signs @ differences >= threshold)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Mean differences of every pair of methods, their p-values, and these corrected for the number of pairs.

    All are square, methods × methods; differences are row minus column.
    """

    differences: FloatArray
    p_values: FloatArray
    adjusted: FloatArray

    def differs(self, level: float = LEVEL) -> BoolArray:
        """Return which pairs of methods can be told apart at this level."""
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
        gaps = shares[:, first] - shares[:, second]
        threshold = np.abs(gaps.sum(axis=0)) - TOLERANCE * np.abs(gaps).sum(axis=0)

        def as_far_apart(signs: FloatArray) -> BoolArray:
            sums = signs @ shares
            apart: BoolArray = np.abs(sums[:, first] - sums[:, second]) >= threshold
            return apart

        found = _p_values(len(shares), max(trials, _TRIALS_PER_PAIR * len(pairs)), seed, as_far_apart)
        for square, values in ((p_values, found), (adjusted, holm(found))):
            square[first, second] = square[second, first] = values
    return Comparison(differences, p_values, adjusted)


def group_letters(differs: BoolArray) -> tuple[str, ...]:
    """Give every method letters so that two methods share one exactly when they cannot be told apart.

    ``differs`` is symmetric, methods × methods, best method first. Starting from one group of all, every pair that
    differs splits the groups that hold both, and groups inside others are dropped (Piepho, "An algorithm for a
    letter-based representation of all-pairwise comparisons", Journal of Computational and Graphical Statistics, 2004).
    Use it beside a table of means, in place of a square of p-values.

    >>> import numpy as np
    >>> from diptych.benchmark.reporting import group_letters
    >>> differs = np.zeros((3, 3), dtype=bool)
    >>> differs[0, 2] = differs[2, 0] = True
    >>> group_letters(differs)
    ('a', 'ab', 'b')
    """
    if differs.ndim != 2 or differs.shape[0] != differs.shape[1] or (differs != differs.T).any():
        raise InvalidInputError("differs must be a symmetric square, methods × methods")
    groups = [frozenset(range(len(differs)))]
    for one, other in np.argwhere(np.triu(differs, 1)).tolist():
        split = [(group - {one}, group - {other}) if {one, other} <= group else (group,) for group in groups]
        groups = _largest([part for parts in split for part in parts])
    groups.sort(key=lambda group: sorted(group))
    names = [_letter(number) for number in range(len(groups))]
    joint = "," if any(len(name) > 1 for name in names) else ""
    return tuple(
        joint.join(name for name, group in zip(names, groups, strict=True) if method in group)
        for method in range(len(differs))
    )


def _largest(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    kept: list[frozenset[int]] = []
    for group in sorted(set(groups), key=len, reverse=True):
        if not any(group <= larger for larger in kept):
            kept.append(group)
    return kept


def _letter(number: int) -> str:
    """Return a, b, … z, aa, ab, … as columns of a spreadsheet are named."""
    name = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, len(ascii_lowercase))
        name = ascii_lowercase[rest] + name
    return name
