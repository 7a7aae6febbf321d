"""One word of a query."""

from __future__ import annotations

from typing import NamedTuple


class QueryWord(NamedTuple):
    """A word of a query and where it stands there.

    >>> from diptych.encoders.text.query_words import query_words
    >>> query_words("the Dogs")
    [QueryWord(start=0, end=3, word='the', counts=False), QueryWord(start=4, end=8, word='dogs', counts=True)]
    """

    start: int
    """Where the word begins in the query as it was typed."""
    end: int
    """Where the word ends there."""
    word: str
    """The word in lower case, without punctuation."""
    counts: bool
    """Whether it says what is looked for: stop words and words such as photo do not."""
