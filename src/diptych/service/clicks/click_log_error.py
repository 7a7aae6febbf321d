"""The click log cannot be read or written."""

from __future__ import annotations

from typing import Literal

from diptych.errors import DiptychError

Cause = Literal["full", "busy", "unusable"]


class ClickLogError(DiptychError):
    """The click log cannot be read or written; searching goes on without it.

    ``cause`` says whether the disk is full, another process was writing (the same call may work a little later), or
    the file cannot be used at all.
    """

    def __init__(self, message: str, *, cause: Cause = "unusable") -> None:
        super().__init__(message)
        self.cause: Cause = cause
