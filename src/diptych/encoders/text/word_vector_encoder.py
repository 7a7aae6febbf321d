"""What the encoders that look words up in a table of vectors share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from diptych.arrays import IntArray
from diptych.encoders.text.word_encoder import WordEncoder
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError


class WordVectorEncoder(WordEncoder):
    """An encoder of texts with a parameter ``vectors``: a source of :func:`load_word_vectors`, or a table in memory.

    What it learns belongs to one table, and it refuses to go on with another.

    >>> import numpy as np
    >>> from diptych.encoders import MeanWordVectors, WordVectors
    >>> table = WordVectors(["boat", "cat"], np.eye(2))
    >>> MeanWordVectors(vectors=table).weights_digest == table.digest
    True
    """

    vectors: str | os.PathLike[str] | WordVectors

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

    def known_words(self, texts: Sequence[str], table: WordVectors) -> tuple[csr_matrix, IntArray]:
        """Return the (texts, words) counts of the words that have vectors, and the rows of these in the table."""
        words = [self.pipeline.words(text) for text in texts]
        found = table.rows(word for sequence in words for word in sequence)
        owners = np.repeat(np.arange(len(texts)), [len(sequence) for sequence in words])
        rows, places = np.unique(found[found >= 0], return_inverse=True)
        entries = (np.ones(len(places)), (owners[found >= 0], places))
        return csr_matrix(entries, shape=(len(texts), len(rows))), rows

    def checked_table(self) -> WordVectors:
        """Return the table, unless something was learned with another one."""
        table = self.table
        if getattr(self, "table_digest_", table.digest) != table.digest:
            raise InvalidInputError(
                f"the word vectors {self.vectors!r} are not those this encoder was fitted with; fit it again"
            )
        return table
