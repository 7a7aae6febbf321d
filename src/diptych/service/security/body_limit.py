"""Bodies that are too large or too slow."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.limits import Limits
from diptych.service.problem import Problem
from diptych.service.problem_answers import ProblemResponse

# Boundaries and the fields beside the file.
_MULTIPART_EXTRA = 64 * 1024
_LINGER_SECONDS = 1.0


class BodyLimit:
    """Counts and times a body while it arrives, whatever its headers say, and answers 413 or 408.

    A multipart body may be as long as an upload may be, any other as long as a document.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body is within bounds."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        most = self._most_bytes(headers.get(b"content-type", b""))
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > most:
            if b"expect" not in headers:
                await _drain(receive)
            await ProblemResponse(_too_large(most))(scope, receive, send)
            return
        await _Bounded(self._app, most, self._limits.body_seconds).run(scope, receive, send)

    def _most_bytes(self, content_type: bytes) -> int:
        is_multipart = content_type.strip().lower().startswith(b"multipart/")
        return self._limits.upload_bytes + _MULTIPART_EXTRA if is_multipart else self._limits.body_bytes


class _Bounded:
    """One request whose body is bounded."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds
        self._received = 0
        self._is_whole = False
        self._is_answered = False
        self._problem: Problem | None = None

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        deadline = asyncio.get_running_loop().time() + self._seconds

        async def bounded_receive() -> Message:
            if self._is_whole:
                return await receive()
            if self._problem is not None:
                raise ClientDisconnect
            return await self._next(receive, deadline)

        async def bounded_send(message: Message) -> None:
            # Whatever the application makes of half a body, the client is told what was wrong with it.
            if self._problem is None or self._is_answered:
                self._is_answered = True
                await send(message)

        with suppress(ClientDisconnect):
            await self._app(scope, bounded_receive, bounded_send)
        if self._problem is not None and not self._is_answered:
            if not self._is_whole and self._problem.status == 413:
                await _drain(receive)
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
            self._problem = _too_large(self._most)
            raise ClientDisconnect
        return message


async def _drain(receive: Receive) -> None:
    """Read on for a moment: a client that is still sending would see a broken connection instead of the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            message: Message = {"more_body": True}
            while message.get("more_body", False):
                message = await receive()


def _too_large(most: int) -> Problem:
    detail = f"The body is larger than {most:,} bytes, the most that is taken here."
    return Problem(413, "too-large", detail, headers={"Connection": "close"})


def _too_slow(seconds: float) -> Problem:
    detail = f"The body did not arrive within {seconds:g} s; send it again, faster or smaller."
    return Problem(408, "too-slow", detail, headers={"Connection": "close"})
