"""The words of a query that count, and where they stand."""

from __future__ import annotations

import re

from diptych.encoders.text.lemmas import lemma
from diptych.encoders.text.query_word import QueryWord
from diptych.encoders.text.stop_words import find_stop_words
from diptych.errors import InvalidInputError

# Single characters that belong together: between double quotes, or each with its full stop, as in "t v" and T.V.
_SPELT = r'(?P<spelt>(?<=")\s*[^\W_](?:\s+[^\W_])+\s*(?=")|\b[^\W_](?:\.[^\W_])+\b)'
# The ending after an apostrophe is no part of the word: a woman's, don't. Other apostrophes are: o'neill.
_PLAIN = r"(?P<plain>[^\W_]+(?:['’](?!(?:s|t|d|m|ll|ve|re)\b)[^\W_]+)*)(?:['’](?:s|t|d|m|ll|ve|re)\b)?"
_WORD = re.compile(f"{_SPELT}|{_PLAIN}", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s.'’]+")
_DROPPED = find_stop_words("pictures")


def query_words(text: str) -> list[QueryWord]:
    """Return the words of :func:`clean_query` with their place in the text, in order.

    >>> from diptych.encoders.text.query_words import query_words
    >>> [(word.start, word.end, word.lemma) for word in query_words('photos of a "t v"')]
    [(13, 16, 'tv')]
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"a query must be a string, got a {type(text).__name__}")
    return [found for match in _WORD.finditer(text) if (found := _counting(match)) is not None]


def _counting(match: re.Match[str]) -> QueryWord | None:
    group = "plain" if match["spelt"] is None else "spelt"
    found = match[group]
    word = _BETWEEN.sub("", found).lower()
    if word in _DROPPED:
        return None
    form = lemma(word)
    # A stop word can hide behind an inflected form.
    if form in _DROPPED:
        return None
    start = match.start(group) + len(found) - len(found.lstrip())
    return QueryWord(start, start + len(found.strip()), word, form)
