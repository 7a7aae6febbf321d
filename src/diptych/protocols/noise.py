"""More and more irrelevant pictures among those that were judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from diptych.errors import InvalidInputError


def with_noise(judgements: Any, fold: int, *, seed: int = 0) -> sparse.csr_array:
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
    if not sparse.issparse(judgements):
        raise InvalidInputError("judgements must be a sparse matrix, whose stored entries are the judged items")
    matrix = sparse.csr_array(judgements)
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
    noisy = sparse.csr_array((np.concatenate(grades), np.concatenate(columns), ends), shape=matrix.shape)
    noisy.sort_indices()
    return noisy
