"""The guards that routes stand behind.

``Reading`` for every route under ``/v1``, ``Writing`` besides for those that change the collection, and ``Clicking``
for those that only add to what the service remembers, which a read-only service does as well. ``Searching`` stands
before those that compute, so that only as many do at once as there are cores.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

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


async def search_turn(context: Context) -> AsyncIterator[None]:
    """Hold one of the few turns in which searches compute."""
    async with context.search_turns.turn():
        yield


Reading = Depends(may_read)
Clicking = Depends(may_click)
Writing = Depends(may_write)
# Given back as soon as the handler has computed its answer, not when a slow client has taken it.
Searching = Depends(search_turn, scope="function")
