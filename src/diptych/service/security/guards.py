"""The guards that routes stand behind.

``Reading`` for every route under ``/v1``, ``Writing`` besides for those that change the collection, and ``Clicking``
for those that only add to what the service remembers, which a read-only service does as well.
"""

from __future__ import annotations

from fastapi import Depends, Request

from diptych.service.context import Context
from diptych.service.problem import Problem


# Coroutines, because FastAPI would spend a thread on each plain function.
async def may_read(request: Request, context: Context) -> None:
    """Let those read who may reach the service: everyone on this machine; beyond it, those with token or session."""
    context.credentials.check_reading(request, is_public=context.settings.public)


async def may_click(request: Request, context: Context) -> None:
    """Let programs with the token and the page itself through."""
    context.credentials.check_changing(request)


async def may_write(request: Request, context: Context) -> None:
    """Let programs with the token and the page itself write, unless nothing may be written."""
    context.credentials.check_changing(request)
    if context.settings.read_only:
        raise Problem(403, "read-only", "This service only reads; start it without --read-only to write.")


Reading = Depends(may_read)
Clicking = Depends(may_click)
Writing = Depends(may_write)
