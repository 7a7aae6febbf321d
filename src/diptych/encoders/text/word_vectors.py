"""A table of word vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, as_matrix, row_blocks
from diptych.errors import InvalidInputError

_DIGEST_ROWS = 10_000


class WordVectors:
    """Words and their vectors, the commonest word first where the source says so.

    Words are looked up in lower case; a word that the table holds only with capitals ("Paris") is found as well. The
    vectors are never changed, may be a memory map, and are shared by copies.

    GloVe: Pennington et al., EMNLP 2014; word2vec: Mikolov et al., NIPS 2013. :func:`load_word_vectors` reads such
    tables.

    Parameters
    ----------
    words:
        One string per vector; of a repeated word the first counts.
    vectors:
        A (words, features) matrix of finite numbers, held as float32.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import WordVectors
    >>> table = WordVectors(["boat", "cat"], np.array([[1.0, 0.0], [0.0, 2.0]]))
    >>> "cat" in table, "dog" in table, table["cat"].tolist()
    (True, False, [0.0, 2.0])
    >>> table.rows(["cat", "dog", "boat"]).tolist()
    [1, -1, 0]
    """

    def __init__(self, words: Sequence[str], vectors: AnyArray) -> None:
        self.words = tuple(words)
        self.vectors = as_matrix(vectors, name="word vectors").astype(np.float32, copy=False).view()
        self.vectors.flags.writeable = False
        if len(self.words) != len(self.vectors):
            raise InvalidInputError(
                f"there must be one vector per word, got {len(self.words)} words and {len(self.vectors)} vectors"
            )
        if not all(isinstance(word, str) for word in self.words):
            raise InvalidInputError("words must be strings")

    @property
    def n_features(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> IntArray:
        """Return the row of each word in the table, −1 for a word that is not there."""
        find = self._row_of.get
        return np.array([find(word, -1) for word in words], dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        """A digest of words and vectors, the same whatever file they came from."""
        digest = hashlib.sha256("\0".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(f"\0{self.vectors.shape}".encode())
        for rows in row_blocks(len(self.vectors), _DIGEST_ROWS):
            digest.update(np.ascontiguousarray(self.vectors[rows]).tobytes())
        return digest.hexdigest()[:32]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        row_of: dict[str, int] = {}
        for row, word in enumerate(self.words):
            row_of.setdefault(word, row)
        # After all words as written, so that "apple" is never taken for "Apple".
        for row, word in enumerate(self.words):
            row_of.setdefault(word.lower(), row)
        return row_of

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._row_of

    def __getitem__(self, word: str) -> FloatArray:
        if word not in self._row_of:
            raise InvalidInputError(f"there is no vector for the word {word!r}; ask with `in` first")
        return np.asarray(self.vectors[self._row_of[word]])

    def __repr__(self) -> str:
        return f"<WordVectors of {len(self)} words, {self.n_features} features, {self.digest}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
