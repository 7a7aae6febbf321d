"""From texts to rows of word numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from diptych.errors import InvalidInputError

PADDING, UNKNOWN = 0, 1
FIRST_WORD = 2
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows, in the order of their numbers.

    >>> from diptych.models.neural.mnil.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary.learned(["A red boat.", "a red house"], min_texts=1)
    >>> vocabulary.words
    ('a', 'red', 'boat', 'house')
    >>> codes, lengths = vocabulary.codes(["a blue boat", "red"], max_words=20)
    >>> codes.tolist(), lengths.tolist()
    ([[2, 1, 4], [3, 0, 0]], [3, 1])
    """

    words: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {word: number for number, word in enumerate(self.words, start=FIRST_WORD)})

    @classmethod
    def learned(cls, texts: Sequence[str], min_texts: int) -> Vocabulary:
        """Take the words that occur in at least ``min_texts`` of the texts, the commonest first."""
        counts = Counter(word for text in texts for word in dict.fromkeys(_words(text)))
        kept = [(word, count) for word, count in counts.items() if count >= min_texts]
        if not kept:
            raise InvalidInputError(f"no word occurs in {min_texts} texts; lower min_texts or pass more texts")
        return cls(tuple(word for word, _ in sorted(kept, key=lambda entry: -entry[1])))

    @property
    def n_codes(self) -> int:
        """How many numbers there are: the words, padding, and one for all unknown words."""
        return FIRST_WORD + len(self.words)

    def codes(self, texts: Sequence[str], max_words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return word numbers, padded with zeros to the longest text, and lengths; a text without words is unknown."""
        numbers = [self._codes_of(text)[:max_words] for text in texts]
        lengths = np.array([len(row) for row in numbers], dtype=np.int64)
        codes = np.full((len(numbers), int(lengths.max())), PADDING, dtype=np.int64)
        for row, found in enumerate(numbers):
            codes[row, : len(found)] = found
        return codes, lengths

    def _codes_of(self, text: str) -> list[int]:
        return [self._numbers.get(word, UNKNOWN) for word in _words(text)] or [UNKNOWN]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
