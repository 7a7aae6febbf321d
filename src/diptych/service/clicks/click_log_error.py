"""The click log cannot be read or written."""

from __future__ import annotations

from diptych.errors import DiptychError


class ClickLogError(DiptychError):
    """The click log cannot be read or written; searching goes on without it.

    ``passing`` says that the same call may work a little later, since another process was writing.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
