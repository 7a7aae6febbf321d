"""One spelling for queries that differ in nothing that matters."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any


def normalised_query(text: str) -> str:
    """Return the query with one form of every character, in lower case, with single blanks.

    Words are neither reordered nor stemmed: whoever learns from the log chooses how to read them.

    >>> from diptych.service.clicks.queries import normalised_query
    >>> normalised_query("  Golden\\tRetriever ")
    'golden retriever'
    """
    # What is no character cannot be written to the file; a client may still send it.
    writable = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(unicodedata.normalize("NFKC", writable).casefold().split())


def is_plain(query: str, terms: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether a search asked for words and nothing else: no picture, no item, nothing subtracted.

    Only such searches say which items go with the words of a query.

    >>> from diptych.service.clicks.queries import is_plain
    >>> is_plain("dog", [{"text": "dog", "weight": 1.0}]), is_plain("dog - cat", [{"text": "cat", "weight": -1}])
    (True, False)
    """
    if terms is None:
        return not any(word.startswith(("item:", "upload:")) or word == "-" for word in query.split())
    return all(term.get("text") is not None and (term.get("weight") or 1.0) > 0 for term in terms)
