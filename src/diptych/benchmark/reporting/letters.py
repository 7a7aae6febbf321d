"""Groups of methods that cannot be told apart, as letters."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np

from diptych.arrays import BoolArray
from diptych.errors import InvalidInputError


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
        parts = [part for group in groups for part in _without_both(group, one, other)]
        groups = _largest(parts)
    groups.sort(key=lambda group: sorted(group))
    names = [_letter(number) for number in range(len(groups))]
    joint = "," if any(len(name) > 1 for name in names) else ""
    return tuple(
        joint.join(name for name, group in zip(names, groups, strict=True) if method in group)
        for method in range(len(differs))
    )


def _without_both(group: frozenset[int], one: int, other: int) -> Sequence[frozenset[int]]:
    return [group - {one}, group - {other}] if one in group and other in group else [group]


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
