"""Texts by the mean of their word vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.encoders.encoder import check_texts
from diptych.encoders.text.tfidf import WordEncoder
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors

_TEXTS_AT_ONCE = 4096


@dataclass(kw_only=True, eq=False, repr=False)
class MeanWordVectors(WordEncoder):
    """The mean of the vectors of a text's known words; zero when no word is known.

    Use it for short texts and queries, in particular where labels or single words must live in the same space (Dong et
    al., 2018, for ConSE); a sentence encoder knows more of a caption's meaning.

    Parameters
    ----------
    vectors:
        A source of :func:`load_word_vectors`, or :class:`WordVectors`.
    stop_words, lemmas:
        As in :class:`WordPipeline`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import MeanWordVectors, WordVectors
    >>> table = WordVectors(["red", "boat"], np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> MeanWordVectors(vectors=table).transform(["A red boat!", "nothing known"]).tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """

    learns: ClassVar[bool] = False

    stop_words: str | None = "pictures"
    vectors: str | os.PathLike[str] | WordVectors = "auto"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; a path is told as text, so that it names and saves the encoder in one form."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        if isinstance(self.vectors, os.PathLike):
            parameters["vectors"] = os.fspath(self.vectors)
        return parameters

    @property
    def weights_digest(self) -> str:
        """The digest of the word vectors."""
        return self.table.digest

    @property
    def table(self) -> WordVectors:
        """The word vectors, loaded when first needed and then shared by all encoders."""
        return self.vectors if isinstance(self.vectors, WordVectors) else load_word_vectors(self.vectors)

    def fit(self, items: Sequence[str]) -> Self:
        """Check the texts; there is nothing to learn from them."""
        check_texts(items)
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row per text, zero for a text without a known word."""
        check_texts(items)
        table = self.table
        means = np.empty((len(items), table.n_features), dtype=np.float32)
        for block in row_blocks(len(items), _TEXTS_AT_ONCE):
            counts, rows = self._known_words([items[row] for row in range(block.start, block.stop)], table)
            totals = np.asarray(counts.sum(axis=1))
            means[block] = (counts @ table.vectors[rows].astype(np.float64)) / np.where(totals > 0, totals, 1)
        return means

    def _known_words(self, texts: Sequence[str], table: WordVectors) -> tuple[scipy.sparse.csr_matrix, IntArray]:
        """Return the (texts, words) counts of the words that have vectors, and the rows of these in the table."""
        words = [self.pipeline.words(text) for text in texts]
        found = table.rows(word for sequence in words for word in sequence)
        owners = np.repeat(np.arange(len(texts)), [len(sequence) for sequence in words])
        rows, places = np.unique(found[found >= 0], return_inverse=True)
        entries = (np.ones(len(places)), (owners[found >= 0], places))
        return scipy.sparse.csr_matrix(entries, shape=(len(texts), len(rows))), rows
