"""Relevance of items that carry the query's label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.relevance.relevance import Judgement, Relevance


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
        queries, gallery, _ = shared_codes(query_labels, gallery_labels)
        self.n_queries, self.n_gallery = len(queries), len(gallery)
        self._queries = queries
        self._items = np.argsort(gallery, kind="stable")
        self._ends = np.cumsum(np.bincount(gallery, minlength=int(queries.max()) + 1))
        self.most = int(np.diff(self._ends, prepend=0).max())

    def judge(self, query: int) -> Judgement:
        """Return the items with the label of ``query``."""
        code = self._queries[query]
        return Judgement(self._items[self._ends[code - 1] if code else 0 : self._ends[code]])


def shared_codes(query_labels: ArrayLike, gallery_labels: ArrayLike) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Return both label lists as numbers of one sorted list of classes, and that list."""
    queries, gallery = _as_labels(query_labels, name="query_labels"), _as_labels(gallery_labels, name="gallery_labels")
    if (queries.dtype.kind == "U") != (gallery.dtype.kind == "U"):
        raise InvalidInputError(
            f"query_labels ({queries.dtype}) and gallery_labels ({gallery.dtype}) must both be numbers or both strings"
        )
    classes, codes = np.unique(np.concatenate([queries, gallery]), return_inverse=True)
    return codes[: len(queries)], codes[len(queries) :], classes


def _as_labels(labels: ArrayLike, *, name: str) -> NDArray[Any]:
    values = np.asarray(labels)
    if values.dtype == object and all(isinstance(value, str) for value in values.ravel()):
        values = values.astype(str)
    if values.ndim != 1:
        raise InvalidInputError(
            f"{name} must be a list with one label per item, got {values.ndim} dimensions; "
            "for several labels per item use SharedLabel"
        )
    if not len(values):
        raise InvalidInputError(f"{name} is empty")
    if values.dtype.kind not in "biufU":
        raise InvalidInputError(f"{name} must be whole numbers or strings, got dtype {values.dtype}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        first = int(np.flatnonzero(np.isnan(values))[0])
        raise InvalidInputError(f"{name} holds NaN, first at {first}; drop items without a label")
    return values
