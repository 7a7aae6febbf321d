"""Finding the longest phrase of a list that begins at a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from diptych.encoders.text.query_word import QueryWord
from diptych.encoders.text.query_words import query_words
from diptych.encoders.text.visual_concepts import imagenet_concepts
from diptych.encoders.text.visual_forms import visual_forms

# Under this key, which is no word, a node keeps the phrase that ends there.
_END = ""


class VisualPhrases:
    """A list of phrases as a tree of words: the work at a word does not grow with the number of phrases.

    A phrase is kept as it is written. One of several words is also found with each word in the singular; a single word
    is not, because what it is a form of may be no concept: elder, the tree, is in ImageNet, old is not.

    >>> from diptych.encoders.text.query_words import query_words
    >>> from diptych.encoders.text.visual_phrases import VisualPhrases
    >>> phrases = VisualPhrases(["hot dog", "dog"])
    >>> phrases.longest(query_words("hot dogs"), 0), phrases.longest(query_words("hot dogs"), 1)
    ((2, 'hot dog'), (1, 'dog'))
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._root: dict[str, Any] = {}
        for phrase in phrases:
            words = [word.word for word in query_words(phrase.replace("_", " "))]
            for spelling in _spellings(words):
                self._add(spelling, phrase)

    def _add(self, words: Sequence[str], phrase: str) -> None:
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        if words:
            node.setdefault(_END, phrase)

    def longest(self, words: Sequence[QueryWord], start: int) -> tuple[int, str | None]:
        """Return how many words the longest phrase at ``start`` has, and the phrase; 0 and None where there is none."""
        best: tuple[int, str | None] = (0, None)
        nodes = [self._root]
        for length, word in enumerate(words[start:], 1):
            nodes = [node[form] for node in nodes for form in visual_forms(word.word) if form in node]
            if not nodes:
                break
            ending = next((node[_END] for node in nodes if _END in node), None)
            if ending is not None:
                best = (length, ending)
        return best


def _spellings(words: Sequence[str]) -> Iterable[Sequence[str]]:
    if len(words) < 2 or not any(word.endswith("s") for word in words):
        return [words]
    return product(*(visual_forms(word) if word.endswith("s") else (word,) for word in words))


@lru_cache(maxsize=1)
def imagenet_phrases() -> VisualPhrases:
    """Return the names of ImageNet's concepts as a tree, made once."""
    return VisualPhrases(imagenet_concepts())
