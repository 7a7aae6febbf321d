"""Words beside a word."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from diptych.arrays import row_blocks
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError

_ROWS_AT_ONCE = 50_000
_ALIKE = 50


class NearWord(NamedTuple):
    """A word and the cosine of its vector with that of the word asked for."""

    word: str
    similarity: float


def nearest_words(table: WordVectors, word: str, k: int = 10) -> list[NearWord]:
    """Return the ``k`` words whose vectors have the largest cosine with that of ``word``, without the word itself.

    What a text encoder takes for the same thing can be read off them (Zhang et al., 2017, table 3, for words learned
    together with pictures; Mikolov et al., 2013, for words learned from text). Among equal cosines the earlier word of
    the table comes first. A word without a vector is an error that suggests words like it.

    >>> import numpy as np
    >>> from diptych.encoders import WordVectors, nearest_words
    >>> table = WordVectors(["boat", "ship", "cat"], np.array([[1.0, 0.1], [2.0, 0.3], [0.0, 1.0]]))
    >>> [near.word for near in nearest_words(table, "boat", k=2)]
    ['ship', 'cat']
    """
    if k < 1:
        raise InvalidInputError(f"k must be at least 1, got {k}")
    row = _row_of(table, word)
    cosines = _cosines(table, row)
    cosines[row] = -np.inf
    order = np.argsort(-cosines, kind="stable")[: min(k, len(table) - 1)]
    return [NearWord(table.words[found], float(cosines[found])) for found in order]


def _row_of(table: WordVectors, word: str) -> int:
    for spelling in (word, word.lower()):
        row = int(table.rows([spelling])[0])
        if row >= 0:
            return row
    alike = get_close_matches(word.lower(), table.words, n=_ALIKE, cutoff=0.7)
    # A slip of the finger more often meant a common word.
    close = sorted(dict.fromkeys(alike), key=lambda found: int(table.rows([found])[0]))[:3]
    guess = f"did you mean {' or '.join(map(repr, close))}?" if close else "ask for another"
    raise InvalidInputError(f"{word!r} is not among the {len(table):,} words that are known; {guess}")


def _cosines(table: WordVectors, row: int) -> np.ndarray:
    asked = table.vectors[row].astype(np.float64)
    cosines = np.empty(len(table))
    for block in row_blocks(len(table), _ROWS_AT_ONCE):
        vectors = table.vectors[block].astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
        cosines[block] = (vectors @ asked) / np.where(lengths > 0, lengths, 1)
    return cosines
