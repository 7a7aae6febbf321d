"""A body while it arrives."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.problem import Problem
from diptych.service.problem_answers import ProblemResponse

_LINGER_SECONDS = 5.0


class BoundedBody:
    """Answers one request whose body is counted and timed while it arrives."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds
        self._received = 0
        self._is_whole = False
        self._is_answered = False
        self._problem: Problem | None = None

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or say what is wrong with its body."""
        deadline = asyncio.get_running_loop().time() + self._seconds
        awaits_permission = b"expect" in dict(scope["headers"])

        async def bounded_receive() -> Message:
            if self._is_whole:
                return await receive()
            if self._problem is not None:
                raise ClientDisconnect
            return await self._next(receive, deadline)

        async def bounded_send(message: Message) -> None:
            # Whatever the application makes of half a body, the client is told what was wrong with it.
            if self._problem is None or self._is_answered:
                if not (self._is_answered or self._is_whole or awaits_permission):
                    # Refused before it was read, as for want of a token.
                    self._is_whole = True
                    await drain(receive)
                self._is_answered = True
                await send(message)

        with suppress(ClientDisconnect):
            await self._app(scope, bounded_receive, bounded_send)
        if self._problem is not None and not self._is_answered:
            if not self._is_whole and self._problem.status == 413:
                await drain(receive)
            await ProblemResponse(self._problem)(scope, receive, send)

    async def _next(self, receive: Receive, deadline: float) -> Message:
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            self._problem = _too_slow(self._seconds)
            raise ClientDisconnect from None
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._received > self._most:
            self._problem = too_large(self._most)
            raise ClientDisconnect
        return message


async def drain(receive: Receive) -> None:
    """Read on for a moment: a client that is still sending would see a broken connection instead of the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            message: Message = {"more_body": True}
            while message.get("more_body", False):
                message = await receive()


def too_large(most: int) -> Problem:
    """Return the problem of a body that is too long."""
    detail = f"The body is larger than {most:,} bytes, the most that is taken here."
    return Problem(413, "too-large", detail, headers={"Connection": "close"})


def _too_slow(seconds: float) -> Problem:
    detail = f"The body did not arrive within {seconds:g} s; send it again, faster or smaller."
    return Problem(408, "too-slow", detail, headers={"Connection": "close"})
