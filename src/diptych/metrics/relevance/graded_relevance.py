"""Relevance by degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from diptych.arrays import IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.relevance.relevance import Judgement, Relevance


class GradedRelevance(Relevance):
    """Grades of query–item pairs: 0 is irrelevant, larger is better.

    ``grades`` is a matrix, queries × gallery, best given as a SciPy sparse one. With ``judged_only`` a query ranks
    only the items that the sparse matrix stores for it, zeros included, as when a human judged a few images for each
    query (Dong et al., TMM 2018); otherwise what is not stored has grade 0. Measures of binary relevance take every
    positive grade as relevant.

    >>> from scipy import sparse
    >>> from diptych.metrics import GradedRelevance
    >>> judged = sparse.csr_array(([3, 0], ([0, 0], [1, 2])), shape=(1, 4))
    >>> GradedRelevance(judged, judged_only=True).judge(0)
    Judgement(items=array([1]...), levels=array([0]), candidates=array([1, 2]...))
    """

    def __init__(self, grades: ArrayLike | Any, *, judged_only: bool = False) -> None:
        if not sparse.issparse(grades) and np.ndim(grades) != 2:
            raise InvalidInputError(f"grades must be a matrix, queries × gallery, got {np.ndim(grades)} dimensions")
        if judged_only and not sparse.issparse(grades):
            raise InvalidInputError("judged_only needs a sparse matrix of grades, whose stored entries are the judged")
        matrix = sparse.csr_array(grades)
        if 0 in matrix.shape:
            raise InvalidInputError(f"grades is empty: shape {matrix.shape}")
        if not (np.isfinite(matrix.data).all() and (matrix.data >= 0).all()):
            raise InvalidInputError("grades must be finite and not negative; use 0 for irrelevant items")
        if not matrix.has_canonical_format:
            # Summing works in place, and the arrays may be the caller's.
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.n_queries, self.n_gallery = matrix.shape
        self.judged_only = judged_only
        self._matrix = matrix
        self.grades = np.unique(matrix.data[matrix.data > 0]).astype(np.float64)
        if not len(self.grades):
            raise InvalidInputError("no grade is positive, so no item is relevant to any query")
        stored = np.diff(matrix.indptr)
        self.most = int(stored.max())

    def judge(self, query: int) -> Judgement:
        """Return the graded items of ``query``."""
        stored = slice(self._matrix.indptr[query], self._matrix.indptr[query + 1])
        items: IntArray = self._matrix.indices[stored]
        grades = self._matrix.data[stored]
        positive = grades > 0
        levels = np.searchsorted(self.grades, grades[positive].astype(np.float64))
        return Judgement(items[positive], levels, items if self.judged_only else None)
