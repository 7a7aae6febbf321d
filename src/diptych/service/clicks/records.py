"""What a click log records of searches and clicks, and what is refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from diptych.errors import DiptychError, InvalidInputError

if TYPE_CHECKING:
    from diptych.metrics.significance import Team

ClickKind = Literal["open", "original", "more_like", "less_like"]
CLICK_KINDS: tuple[ClickKind, ...] = get_args(ClickKind)

# Asking for less of something is recorded, but it is no sign that the answer was wanted.
NEGATIVE_CLICK: ClickKind = "less_like"


class UnknownSearchError(DiptychError, LookupError):
    """No search of that id is in the log.

    >>> from diptych.service.clicks import UnknownSearchError
    >>> print(UnknownSearchError("beef"))
    there is no search 'beef' in the click log; search again and use the search_id of the answer
    """

    def __init__(self, search_id: str) -> None:
        # The id came from outside: the message shows no more of it than an id is long.
        super().__init__(
            f"there is no search {search_id[:40]!r} in the click log; search again and use the search_id of the answer"
        )


class NotShownError(InvalidInputError):
    """The item was not shown at that position of the search.

    >>> from diptych.service.clicks import NotShownError
    >>> print(NotShownError("cat-1", 3))
    the search did not show 'cat-1' at position 3; send the id and the rank of an answer of that search
    """

    def __init__(self, item: str, position: int) -> None:
        super().__init__(
            f"the search did not show {item[:80]!r} at position {position}; "
            "send the id and the rank of an answer of that search"
        )


class InterleavingError(DiptychError):
    """Two retrievers are interleaved already, or none are."""


def normalised_query(text: str) -> str:
    """Return the query with one form of every character, in lower case, with single blanks, and else as it was.

    >>> from diptych.service.clicks.records import normalised_query
    >>> normalised_query("  Golden\\tRetriever ")
    'golden retriever'
    """
    return " ".join(unicodedata.normalize("NFKC", writable(text)).casefold().split())


def is_plain(query: str, terms: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether a search asked for words and nothing else: no picture, no item, nothing subtracted.

    >>> from diptych.service.clicks.records import is_plain
    >>> is_plain("dog", [{"text": "dog", "weight": 1.0}]), is_plain("dog - cat", [{"text": "cat", "weight": -1}])
    (True, False)
    """
    if terms is None:
        return not any(word.startswith(("item:", "upload:")) or word == "-" for word in query.split())
    return all(term.get("text") is not None and (term.get("weight") or 1.0) > 0 for term in terms)


@dataclass(frozen=True, slots=True)
class InterleavedPage:
    """The teams of one page's results, in order; pages with the same ``draw``, formed as the id of a search, fit."""

    interleaving: int
    draw: str
    teams: Sequence[Team]


def writable(text: str) -> str:
    """Return a text as it can be stored: half a surrogate pair becomes a question mark, NUL the replacement sign."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def iso_time(time: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, in UTC and to the second."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
