"""Turn tie groups into one definite order."""

from __future__ import annotations

from typing import Literal, cast, get_args

import numpy as np

from diptych.arrays import IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.ranked_groups import RankedGroups

Ties = Literal["expected", "random", "optimistic", "pessimistic"]


def check_ties(ties: str) -> None:
    """Raise an error that lists the four policies unless ``ties`` is one of them."""
    if ties not in get_args(Ties):
        raise InvalidInputError(f"ties must be one of {', '.join(get_args(Ties))}, got {ties!r}")


def break_ties(groups: RankedGroups, ties: Ties, seed: int = 0) -> RankedGroups:
    """Return ``groups`` with ties resolved, each relevant item alone in its position.

    ``expected`` keeps the groups, because measures then take exact expectations. ``random`` gives the relevant items
    of a group a uniformly random subset of its positions; the draw depends on ``seed`` and on the number of the query
    alone, so that it does not change with the size of the blocks. ``optimistic`` puts relevant items first, higher
    grades before lower ones, ``pessimistic`` does the opposite.

    >>> from diptych.metrics import AP, RankedGroups, break_ties
    >>> one_of_two = RankedGroups.all_tied([[1]], [2])
    >>> [float(AP().compute(break_ties(one_of_two, ties))[0]) for ties in ("optimistic", "pessimistic")]
    [1.0, 0.5]
    """
    check_ties(ties)
    if ties == "expected":
        return groups
    parent = np.repeat(np.arange(len(groups.query)), groups.hits)
    offset = np.arange(len(parent)) - np.repeat(np.cumsum(groups.hits) - groups.hits, groups.hits)
    level = _levels(groups, descending=ties == "optimistic")
    if ties == "pessimistic":
        offset = offset + (groups.size - groups.hits)[parent]
    elif ties == "random":
        _shuffle(groups, offset, level, seed)
    return RankedGroups(
        query=groups.query[parent],
        before=groups.before[parent] + offset,
        size=np.ones(len(parent), dtype=np.int64),
        relevant=(level[:, None] == np.arange(len(groups.grades))).astype(np.int64),
        total=groups.total,
        gallery=groups.gallery,
        grades=groups.grades,
        rows=groups.rows,
    )


def _levels(groups: RankedGroups, *, descending: bool) -> IntArray:
    """Return the grade index of every relevant item, ordered by grade inside its group."""
    levels = np.arange(len(groups.grades))
    counts = groups.relevant
    if descending:
        levels, counts = levels[::-1], counts[:, ::-1]
    return cast(IntArray, np.repeat(np.tile(levels, len(counts)), counts.ravel()))


def _shuffle(groups: RankedGroups, offset: IntArray, level: IntArray, seed: int) -> None:
    """Draw positions and grades of the undecided groups, in place."""
    end = np.cumsum(groups.hits)
    generator, owner = np.random.default_rng(seed), -1
    for index in np.flatnonzero(groups.undecided):
        if groups.query[index] != owner:
            owner = int(groups.query[index])
            generator = np.random.default_rng([seed, int(groups.rows[owner])])
        hits = groups.hits[index]
        items = slice(end[index] - hits, end[index])
        offset[items] = np.sort(generator.choice(groups.size[index], hits, replace=False, shuffle=False))
        level[items] = generator.permutation(level[items])
