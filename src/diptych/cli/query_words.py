"""The words of a command line as one query."""

from __future__ import annotations

from collections.abc import Sequence


def joined_words(words: Sequence[str]) -> str:
    """Join the arguments of a command to a query.

    A shell takes quotation marks away; where several arguments make up the query, one that holds spaces was quoted and
    gets them back, so that it stays one term.

    >>> from diptych.cli.query_words import joined_words
    >>> joined_words(["golden", "retriever"]), joined_words(["salt - pepper"])
    ('golden retriever', 'salt - pepper')
    >>> joined_words(["2:golden retriever", "+", "my photo.jpg"])
    '"2:golden retriever" + "my photo.jpg"'
    """
    if len(words) == 1:
        return words[0]
    return " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
