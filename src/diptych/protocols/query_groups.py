"""Queries in groups of a kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class QueryGroups:
    """Groups of queries by a number that each has, such as its length or its visualness.

    Group k holds the queries with edges[k] < value ≤ edges[k + 1]; the first also those at its lower edge. The default
    edges are the five groups of visualness of Dong et al. (2018); that bounds belong to the group below them is our
    reading.

    >>> from diptych.protocols import QueryGroups
    >>> groups = QueryGroups()
    >>> groups.of([0.0, 0.2, 0.5, 1.0]).tolist()
    [0, 0, 2, 4]
    >>> groups.means([0.0, 0.2, 0.5, 1.0], [0.1, 0.3, 0.5, 0.7]).tolist()
    [0.2, nan, 0.5, nan, 0.7]
    """

    edges: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or (np.diff(self.edges) <= 0).any():
            raise InvalidInputError(f"edges must be two or more increasing numbers, got {self.edges}")

    def of(self, values: ArrayLike) -> IntArray:
        """Return the group of each value; one outside the edges is an error."""
        numbers = np.asarray(values, dtype=np.float64)
        if not ((numbers >= self.edges[0]) & (numbers <= self.edges[-1])).all():
            raise InvalidInputError(f"values must lie in {self.edges[0]:g}..{self.edges[-1]:g}; give wider edges")
        return np.maximum(np.searchsorted(self.edges, numbers, side="left") - 1, 0)

    def means(self, values: ArrayLike, scores: ArrayLike) -> FloatArray:
        """Return the mean score of each group, queries without a score left out; NaN for an empty group."""
        groups, numbers = self.of(values), np.asarray(scores, dtype=np.float64)
        if groups.shape != numbers.shape:
            raise InvalidInputError(f"each query needs a value and a score, got {groups.size} and {numbers.size}")
        known = ~np.isnan(numbers)
        n_groups = len(self.edges) - 1
        counts = np.bincount(groups[known], minlength=n_groups)
        sums = np.bincount(groups[known], weights=numbers[known], minlength=n_groups)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
