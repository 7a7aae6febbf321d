"""What goes wrong with a click log: it cannot be used, or a click, a search or an interleaving does not fit it."""

from __future__ import annotations

from typing import Literal

from diptych.errors import DiptychError, InvalidInputError

Cause = Literal["full", "busy", "unusable"]


class ClickLogError(DiptychError):
    """The click log cannot be read or written; searching goes on without it.

    ``cause``: the disk is full, another process was writing (a later call may work), or the file cannot be used at all.
    """

    def __init__(self, message: str, *, cause: Cause = "unusable") -> None:
        super().__init__(message)
        self.cause: Cause = cause


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
