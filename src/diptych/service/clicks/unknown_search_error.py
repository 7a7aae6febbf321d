"""A search that the log does not hold."""

from __future__ import annotations

from diptych.errors import DiptychError


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
