"""The guards that routes stand behind."""

from __future__ import annotations

from fastapi import Depends

from diptych.service.context import Context
from diptych.service.problem import Problem


def may_read(context: Context) -> None:
    """Let everyone read who may reach the service."""


def may_write(context: Context) -> None:
    """Refuse writes where nothing may be written."""
    if context.settings.read_only:
        raise Problem(403, "read-only", "This service only reads; start it without --read-only to write.")


Reading = Depends(may_read)
Writing = Depends(may_write)
