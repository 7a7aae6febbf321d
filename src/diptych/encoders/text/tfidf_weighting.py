"""How much a word weighs: more when a text repeats it, less when many texts hold it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.preprocessing import normalize

from diptych.arrays import FloatArray


def inverse_document_frequencies(counts: csr_matrix) -> FloatArray:
    """Return 1 + log((1 + n)/(1 + n_w)) for each word, where n_w of the n rows hold it.

    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from diptych.encoders.text.tfidf_weighting import inverse_document_frequencies
    >>> inverse_document_frequencies(csr_matrix(np.array([[1, 0], [3, 0]]))).round(2)
    array([1. , 2.1])
    """
    holders = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.asarray(1 + np.log((1 + counts.shape[0]) / (1 + holders)))


def weighted_counts(counts: csr_matrix, idf: FloatArray) -> csr_matrix:
    """Return rows of (1 + log c)·idf scaled to unit length, where a word occurs c times."""
    weights = counts.astype(np.float64)
    weights.data = 1 + np.log(weights.data)
    return normalize(weights @ diags(idf), copy=False)
