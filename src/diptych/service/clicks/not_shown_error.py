"""A click on something that was not there."""

from __future__ import annotations

from diptych.errors import InvalidInputError


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
