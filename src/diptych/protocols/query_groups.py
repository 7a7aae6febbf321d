"""Queries of a log: in groups of a kind, and with more and more irrelevant candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
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


def with_noise(judgements: Any, fold: int, *, seed: int = 0) -> scipy.sparse.csr_array:
    """Return the judgements with ``fold`` times as many irrelevant items for every query, drawn at random.

    A query with n judged items gets fold·n more, of grade 0, drawn without replacement from the items that were judged
    for other queries and not for this one; where there are fewer, all of them. Use it to see how a method does when a
    search engine has not filtered its candidates first, over several seeds. One seed draws nested sets: the noise of
    fold 1 is part of that of fold 2.

    Parameters
    ----------
    judgements :
        A SciPy sparse matrix of grades, queries × gallery, whose stored entries are the judged items, zeros included.

    References
    ----------
    Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018, figure 7, which goes
    from 1 to 10; how often the draws were repeated is not said.

    >>> from scipy import sparse
    >>> from diptych.metrics import GradedRelevance
    >>> from diptych.protocols import with_noise
    >>> judged = sparse.csr_array(([3, 2, 1], ([0, 1, 1], [0, 1, 2])), shape=(2, 3))
    >>> GradedRelevance(with_noise(judged, 1), judged_only=True).judge(0).candidates.size
    2
    """
    if fold < 0:
        raise InvalidInputError(f"fold must be 0 or more, got {fold}")
    if not scipy.sparse.issparse(judgements):
        raise InvalidInputError("judgements must be a sparse matrix, whose stored entries are the judged items")
    matrix = scipy.sparse.csr_array(judgements)
    judged_anywhere = np.unique(matrix.indices)
    columns, grades, ends = [], [], [0]
    for query in range(matrix.shape[0]):
        stored = slice(matrix.indptr[query], matrix.indptr[query + 1])
        own = matrix.indices[stored]
        others = np.setdiff1d(judged_anywhere, own)
        drawn = np.random.default_rng([seed, query]).permutation(others)[: fold * len(own)]
        columns.append(np.concatenate([own, drawn]))
        grades.append(np.concatenate([matrix.data[stored], np.zeros(len(drawn), dtype=matrix.dtype)]))
        ends.append(ends[-1] + len(columns[-1]))
    noisy = scipy.sparse.csr_array((np.concatenate(grades), np.concatenate(columns), ends), shape=matrix.shape)
    noisy.sort_indices()
    return noisy
