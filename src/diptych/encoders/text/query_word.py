"""One word of a query that counts."""

from __future__ import annotations

from typing import NamedTuple


class QueryWord(NamedTuple):
    """A word of a query, where it stands there, and its dictionary form.

    >>> from diptych.encoders.text.query_words import query_words
    >>> query_words("the Dogs")
    [QueryWord(start=4, end=8, word='dogs', lemma='dog')]
    """

    start: int
    """Where the word begins in the query as it was typed."""
    end: int
    """Where the word ends there."""
    word: str
    """The word in lower case, without punctuation."""
    lemma: str
    """Its dictionary form."""
