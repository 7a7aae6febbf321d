"""A text as the mean of its word vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.encoders.text.tfidf_weighting import inverse_document_frequencies
from diptych.encoders.text.word_vector_encoder import WordVectorEncoder
from diptych.encoders.text.word_vectors import WordVectors
from diptych.encoders.text.words import check_texts
from diptych.errors import InvalidInputError

_TEXTS_AT_ONCE = 4096
# The value of Arora et al. for most of their tasks.
_SIF_SMOOTHING = 1e-3


class MeanWordVectors(WordVectorEncoder):
    """The mean of the vectors of a text's known words, weighted if asked for; zero when no word is known.

    With ``weighting="idf"`` a word counts 1 + log((1 + n)/(1 + n_w)), where n_w of the n training texts hold it; with
    ``"sif"`` it counts a/(a + p_w), where p_w is its share of all training words and a = 0.001. Removing the direction
    that all texts have in common then completes SIF, the smooth inverse frequency of Arora et al., "A simple but
    tough-to-beat baseline for sentence embeddings", ICLR 2017.

    Use it for short texts and queries, in particular where labels or single words must live in the same space (Dong et
    al., 2018, for ConSE); a sentence encoder knows more of a caption's meaning.

    Parameters
    ----------
    vectors:
        A source of :func:`load_word_vectors`, or :class:`WordVectors`.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    weighting:
        None, ``"idf"`` or ``"sif"``.
    remove_components:
        How many leading singular directions of the training texts are projected out; SIF removes 1.

    Attributes
    ----------
    table_rows_, word_weights_, unseen_weight_:
        The training words' rows in the table, their weights, and the weight of any other word.
    common_:
        The (remove_components, features) directions projected out.
    table_digest_:
        The digest of the word vectors these belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import MeanWordVectors, WordVectors
    >>> table = WordVectors(["red", "boat"], np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> MeanWordVectors(vectors=table).transform(["A red boat!", "nothing known"]).tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        *,
        vectors: str | os.PathLike[str] | WordVectors = "auto",
        stop_words: str | None = "pictures",
        lemmas: bool | str = False,
        weighting: Literal["idf", "sif"] | None = None,
        remove_components: int = 0,
    ) -> None:
        self.vectors = vectors
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.weighting = weighting
        self.remove_components = remove_components

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether weights or common directions are learned; a plain mean works without a fit."""
        return self.weighting is not None or self.remove_components > 0

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the weights and the common directions from training texts, where there are any to learn."""
        self._check_parameters()
        check_texts(items)
        if not self.learns:
            return self
        table = self.table
        counts, self.table_rows_ = self.known_words(items, table)
        if len(self.table_rows_) == 0:
            raise InvalidInputError("no word of the training texts has a vector; pass other texts or word vectors")
        self.word_weights_, self.unseen_weight_ = self._weights(counts)
        self.table_digest_ = table.digest
        self.common_: FloatArray = np.zeros((0, table.n_features))
        self.common_ = _leading_directions(self._all_means(items, table), self.remove_components)
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row per text, zero for a text without a known word."""
        self._check_parameters()
        check_texts(items)
        if self.learns:
            check_is_fitted(self, "common_")
        table = self.checked_table()
        return self._all_means(items, table).astype(np.float32)

    def _check_parameters(self) -> None:
        if self.weighting not in (None, "idf", "sif"):
            raise InvalidInputError(f"weighting must be None, 'idf' or 'sif', got {self.weighting!r}")
        if self.remove_components < 0:
            raise InvalidInputError(f"remove_components must be at least 0, got {self.remove_components}")

    def _weights(self, counts: csr_matrix) -> tuple[FloatArray, float]:
        """Return the weight of each column's word, and that of a word never seen."""
        if self.weighting == "idf":
            return inverse_document_frequencies(counts), 1 + float(np.log(1 + counts.shape[0]))
        if self.weighting == "sif":
            shares = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
            return _SIF_SMOOTHING / (_SIF_SMOOTHING + shares), 1.0
        return np.ones(counts.shape[1]), 1.0

    def _all_means(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        means = np.zeros((len(texts), table.n_features))
        for rows in row_blocks(len(texts), _TEXTS_AT_ONCE):
            means[rows] = self._means([texts[row] for row in range(rows.start, rows.stop)], table)
        return means

    def _means(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        counts, rows = self.known_words(texts, table)
        weighted = counts.multiply(self._weights_of(rows)).tocsr()
        totals = np.asarray(weighted.sum(axis=1))
        means = (weighted @ table.vectors[rows].astype(np.float64)) / np.where(totals > 0, totals, 1)
        if self.learns:
            means -= (means @ self.common_.T) @ self.common_
        return np.asarray(means)

    def _weights_of(self, rows: IntArray) -> FloatArray:
        if not self.learns:
            return np.ones(len(rows))
        places = np.minimum(np.searchsorted(self.table_rows_, rows), len(self.table_rows_) - 1)
        seen = self.table_rows_[places] == rows
        return np.where(seen, self.word_weights_[places], self.unseen_weight_)


def _leading_directions(means: FloatArray, count: int) -> FloatArray:
    """Return the leading right singular vectors; their signs do not matter for a projection."""
    _, directions = np.linalg.eigh(means.T @ means)
    return np.asarray(directions[:, ::-1][:, :count].T)
