"""Which items of the gallery are relevant to a query: by one label, by shared labels, or by grades."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import LARGEST_EXACT, FloatArray, IntArray, as_labels, refuse_masked
from diptych.errors import InvalidInputError

__all__ = ["GradedRelevance", "Judgement", "Relevance", "SameLabel", "SharedLabel"]


class Judgement(NamedTuple):
    """What is known about one query.

    ``items`` are the relevant gallery items, ``levels`` their positions in the relevance's ``grades`` (None when there
    is one grade), ``candidates`` the items to rank (None for the whole gallery).
    """

    items: IntArray
    levels: IntArray | None = None
    candidates: IntArray | None = None


class Relevance(ABC):
    """The relevance of a gallery to queries, asked query by query so that queries × gallery is never held.

    ``n_queries`` and ``n_gallery`` are the numbers of both, ``grades`` the positive grades, ascending. ``most`` is at
    least the number of relevant items of any query: memory is planned with it.

    >>> from diptych.metrics import SameLabel
    >>> SameLabel(["cat", "dog"], ["dog", "cat", "cat"]).judge(0).items
    array([1, 2])
    """

    n_queries: int
    n_gallery: int
    most: int
    grades: FloatArray = np.ones(1)

    @abstractmethod
    def judge(self, query: int) -> Judgement:
        """Return the relevant items of one query."""


class SameLabel(Relevance):
    """An item is relevant when its label equals the query's.

    Labels are whole numbers or strings. For class retrieval they are classes (Costa Pereira et al., TPAMI 2014). For
    caption retrieval they are image numbers: with five captions per image an image query has five relevant captions
    and a caption one relevant image.

    >>> from diptych.metrics import SameLabel
    >>> captions_of_two_images = SameLabel([7, 9], [7, 7, 9])
    >>> captions_of_two_images.judge(0).items
    array([0, 1])
    """

    def __init__(self, query_labels: ArrayLike, gallery_labels: ArrayLike) -> None:
        queries, gallery, _ = shared_class_indices(query_labels, gallery_labels)
        self.n_queries, self.n_gallery = len(queries), len(gallery)
        self._queries = queries
        self._items = np.argsort(gallery, kind="stable")
        self._ends = np.cumsum(np.bincount(gallery, minlength=int(queries.max()) + 1))
        self.most = int(np.diff(self._ends, prepend=0).max())

    def judge(self, query: int) -> Judgement:
        """Return the items with the label of ``query``."""
        code = self._queries[query]
        return Judgement(self._items[self._ends[code - 1] if code else 0 : self._ends[code]])


def shared_class_indices(query_labels: ArrayLike, gallery_labels: ArrayLike) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Return both label lists as numbers of one sorted list of classes, and that list."""
    queries, gallery = _as_labels(query_labels, name="query_labels"), _as_labels(gallery_labels, name="gallery_labels")
    if (queries.dtype.kind == "U") != (gallery.dtype.kind == "U"):
        raise InvalidInputError(
            f"query_labels ({queries.dtype}) and gallery_labels ({gallery.dtype}) must both be numbers or both strings"
        )
    classes, codes = np.unique(_merged(queries, gallery), return_inverse=True)
    return codes[: len(queries)], codes[len(queries) :], classes


def _merged(queries: NDArray[Any], gallery: NDArray[Any]) -> NDArray[Any]:
    """Return both lists as one; NumPy makes floats of int64 and uint64, where large numbers lose their last digits."""
    both = np.concatenate([queries, gallery])
    whole = [part for part in (queries, gallery) if part.dtype.kind in "iu"]
    if both.dtype.kind != "f" or all(part.min() >= -LARGEST_EXACT and part.max() <= LARGEST_EXACT for part in whole):
        return both
    return np.concatenate([queries.astype(object), gallery.astype(object)])


def _as_labels(labels: ArrayLike, *, name: str) -> NDArray[Any]:
    values = as_labels(labels, name=name, one_column=False)
    if values.ndim != 1:
        raise InvalidInputError(
            f"{name} must be a list with one label per item, got {values.ndim} dimensions; "
            f"for several labels per item use SharedLabel, for a column {name}.ravel()"
        )
    if not len(values):
        raise InvalidInputError(f"{name} is empty")
    if values.dtype.kind not in "biufU":
        raise InvalidInputError(f"{name} must be whole numbers or strings, got dtype {values.dtype}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        first = int(np.flatnonzero(np.isnan(values))[0])
        raise InvalidInputError(f"{name} holds NaN, first at {first}; drop items without a label")
    return values


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
    if not scipy.sparse.issparse(indicator) and np.ndim(indicator) != 2:
        raise InvalidInputError(
            f"{name} must be a matrix, items × labels, got {np.ndim(indicator)} dimensions; "
            "for one label per item use SameLabel"
        )
    refuse_masked(indicator, name=name)
    matrix = scipy.sparse.csr_array(indicator, copy=True)
    if 0 in matrix.shape:
        raise InvalidInputError(f"{name} is empty: shape {matrix.shape}")
    matrix.eliminate_zeros()
    if not (matrix.data == 1).all():
        raise InvalidInputError(f"{name} must hold 0 and 1 (or False and True) alone")
    return matrix


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
        if not scipy.sparse.issparse(grades) and np.ndim(grades) != 2:
            raise InvalidInputError(f"grades must be a matrix, queries × gallery, got {np.ndim(grades)} dimensions")
        if judged_only and not scipy.sparse.issparse(grades):
            raise InvalidInputError("judged_only needs a sparse matrix of grades, whose stored entries are the judged")
        refuse_masked(grades, name="grades")
        matrix = scipy.sparse.csr_array(grades)
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
