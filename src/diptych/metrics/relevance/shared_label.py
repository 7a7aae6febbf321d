"""Relevance of items that share a label with the query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from diptych.arrays import IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.relevance.relevance import Judgement, Relevance


class SharedLabel(Relevance):
    """An item is relevant when it shares at least one label with the query.

    Both sides are indicator matrices, items × labels, dense or sparse: 1 or True where the item carries the label. This
    is the usual rule of multi-label cross-modal retrieval.

    >>> from diptych.metrics import SharedLabel
    >>> SharedLabel([[1, 0, 1]], [[1, 0, 0], [0, 1, 0], [1, 1, 1]]).judge(0).items
    array([0, 2])
    """

    def __init__(self, query_indicator: ArrayLike | Any, gallery_indicator: ArrayLike | Any) -> None:
        queries = _as_indicator(query_indicator, name="query_indicator")
        gallery = _as_indicator(gallery_indicator, name="gallery_indicator")
        if queries.shape[1] != gallery.shape[1]:
            raise InvalidInputError(
                f"query_indicator has {queries.shape[1]} labels, gallery_indicator {gallery.shape[1]}; "
                "use one list of labels for both"
            )
        self.n_queries, self.n_gallery = queries.shape[0], gallery.shape[0]
        self._labels = queries
        self._carriers = gallery.tocsc()
        carriers = np.diff(self._carriers.indptr).astype(np.int64)
        self.most = min(self.n_gallery, int((queries.astype(np.int64) @ carriers).max()))

    def judge(self, query: int) -> Judgement:
        """Return the items that share a label with ``query``."""
        shares = np.zeros(self.n_gallery, dtype=bool)
        for label in _row(self._labels, query):
            shares[_row(self._carriers, label)] = True
        return Judgement(np.flatnonzero(shares))


def _row(matrix: Any, index: int) -> IntArray:
    indices: IntArray = matrix.indices[matrix.indptr[index] : matrix.indptr[index + 1]]
    return indices


def _as_indicator(indicator: ArrayLike | Any, *, name: str) -> Any:
    if not sparse.issparse(indicator) and np.ndim(indicator) != 2:
        raise InvalidInputError(
            f"{name} must be a matrix, items × labels, got {np.ndim(indicator)} dimensions; "
            "for one label per item use SameLabel"
        )
    matrix = sparse.csr_array(indicator, copy=True)
    if 0 in matrix.shape:
        raise InvalidInputError(f"{name} is empty: shape {matrix.shape}")
    matrix.eliminate_zeros()
    if not (matrix.data == 1).all():
        raise InvalidInputError(f"{name} must hold 0 and 1 (or False and True) alone")
    return matrix
