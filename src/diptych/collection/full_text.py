"""Captions found by their words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csc_matrix

from diptych.arrays import FloatArray

_WORD = re.compile(r"\w+")


class FullText:
    """BM25 over the captions of a collection.

    A caption of length l that holds a word f times gains idf·f(k₁ + 1)/(f + k₁(1 − b + b·l/l̄)) for each word asked,
    with idf = log(1 + (N − n + ½)/(n + ½)), k₁ = 1.2 and b = 0.75. Words are compared without case and accents.

    Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond", 2009.

    >>> from diptych.collection.full_text import FullText
    >>> FullText(["a red boat", "a blue boat", "a cat"]).scores("Red boat").argsort()[::-1].tolist()[:2]
    [0, 1]
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(words_of(text)) for text in texts]
        self._columns: dict[str, int] = {}
        for count in counts:
            for word in count:
                self._columns.setdefault(word, len(self._columns))
        rows = np.repeat(np.arange(len(texts)), [len(count) for count in counts])
        columns = np.array([self._columns[word] for count in counts for word in count], dtype=np.int64)
        frequencies = np.array([number for count in counts for number in count.values()], dtype=np.float64)
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        mean = lengths.mean() if lengths.sum() else 1.0
        holders = np.bincount(columns, minlength=len(self._columns))
        rarity = np.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
        saturated = frequencies * (k1 + 1) / (frequencies + k1 * (1 - b + b * lengths[rows] / mean))
        self._gains = csc_matrix((rarity[columns] * saturated, (rows, columns)), (len(texts), len(self._columns)))

    def scores(self, words: str) -> FloatArray:
        """Return the gain of every caption; 0 for one without any of the words."""
        asked = Counter(word for word in words_of(words) if word in self._columns)
        total = np.zeros(self._gains.shape[0])
        for word, times in asked.items():
            column = self._columns[word]
            holders = slice(self._gains.indptr[column], self._gains.indptr[column + 1])
            total[self._gains.indices[holders]] += times * self._gains.data[holders]
        return total


def words_of(text: str) -> list[str]:
    """Return the words of a text without case and accents.

    >>> from diptych.collection.full_text import words_of
    >>> words_of("Ein Café, 2 Boote")
    ['ein', 'cafe', '2', 'boote']
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(letter for letter in decomposed if not unicodedata.combining(letter)))
