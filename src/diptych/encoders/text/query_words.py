"""The words of a query, and where they stand."""

from __future__ import annotations

import re
from functools import lru_cache

from diptych.encoders.text.lemmas import lemma
from diptych.encoders.text.query_word import QueryWord
from diptych.encoders.text.stop_words import find_stop_words
from diptych.errors import InvalidInputError

# Single characters that belong together: between double quotes, or with full stops between, as in "t v" and T.V.
_SPELT = r'(?<=")\s*[^\W_](?:\s+[^\W_])+\s*(?=")|\b[^\W_](?:\.[^\W_])+\b'
# The ending after an apostrophe is no part of the word: a woman's, don't. Other apostrophes are: o'neill.
_PLAIN = r"([^\W_]+(?:['’](?!(?:s|t|d|m|ll|ve|re)\b)[^\W_]+)*)(?:['’](?:s|t|d|m|ll|ve|re)\b)?"
_WORD = re.compile(f"({_SPELT})|{_PLAIN}", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s.'’]+")
_DROPPED = find_stop_words("pictures")


def query_words(text: str) -> list[QueryWord]:
    """Return the words of a text in order, those that do not count included.

    >>> from diptych.encoders.text.query_words import query_words
    >>> [(word.start, word.end, word.word) for word in query_words('photos of a "t v"') if word.counts]
    [(13, 16, 'tv')]
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"a query must be a string, got a {type(text).__name__}")
    return [_query_word(match) for match in _WORD.finditer(text)]


def _query_word(match: re.Match[str]) -> QueryWord:
    group = match.lastindex or 0
    found, (start, end) = match[group], match.span(group)
    word = found.lower()
    if not word.isalnum():
        start, end = start + len(found) - len(found.lstrip()), end - len(found) + len(found.rstrip())
        word = _BETWEEN.sub("", word)
    return QueryWord(start, end, word, _counts(word))


@lru_cache(maxsize=1 << 18)
def _counts(word: str) -> bool:
    # A stop word can hide behind an inflected form.
    return word not in _DROPPED and lemma(word) not in _DROPPED
