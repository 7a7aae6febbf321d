"""Queries whose points are sums of learned word vectors."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from diptych.arrays import FloatArray, IntArray
from diptych.models.clicks.adagrad import Adagrad


class WordQueries:
    """The text side of a ranking that learns a vector for each word: points are ``words @ weights``.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from diptych.models.clicks.word_queries import WordQueries
    >>> queries = WordQueries(csr_array(np.array([[1.0, 2.0]])), np.eye(2))
    >>> queries.points(np.array([0])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, words: csr_array, weights: FloatArray) -> None:
        self._words = words
        self._adagrad = Adagrad(weights)

    @property
    def weights(self) -> FloatArray:
        """The vectors of the words."""
        return self._adagrad.array

    def points(self, rows: IntArray) -> FloatArray:
        """Return the points of some queries."""
        return np.asarray(self._words[rows] @ self.weights)

    def move(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Move the words of some queries, given the gradient of the loss by the queries' points."""
        asked = self._words[rows]
        touched, columns = np.unique(asked.indices, return_inverse=True)
        narrow = csr_array((asked.data, columns, asked.indptr), shape=(len(rows), len(touched)))
        self._adagrad.step_rows(touched, np.asarray(narrow.T @ gradient), rate=rate)
