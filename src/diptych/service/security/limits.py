"""Limits on requests: size and speed of bodies, requests per second, searches at once."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv6Address, ip_address

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.problems import HttpMiddleware, Problem
from diptych.service.settings import Limits

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
                is_refused = message.get("status", 500) < 500
                if is_refused and not (self._is_answered or self._is_whole or awaits_permission):
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
            raise self._problem

    async def _next(self, receive: Receive, deadline: float) -> Message:
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            detail = f"The body did not arrive within {self._seconds:g} s; send it again, faster or smaller."
            self._problem = Problem(408, "too-slow", detail, headers={"Connection": "close"})
            raise ClientDisconnect from None
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._received > self._most:
            self._problem = _too_large(self._most)
            raise ClientDisconnect
        return message


async def drain(receive: Receive) -> None:
    """Read on for a moment: a client that is still sending would see a broken connection instead of the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            message: Message = {"more_body": True}
            while message.get("more_body", False):
                message = await receive()


async def client_leaves(receive: Receive) -> None:
    """Wait until a client whose request has been read breaks the connection off."""
    try:
        # The end of a request without a body may come before.
        for _ in range(2):
            if (await receive())["type"] == "http.disconnect":
                return
    except ClientDisconnect:
        return
    # A server that says the same again and again says nothing.
    await asyncio.Event().wait()


def _too_large(most: int) -> Problem:
    detail = f"The body is larger than {most:,} bytes, the most that is taken here."
    return Problem(413, "too-large", detail, headers={"Connection": "close"})


# Boundaries and the fields beside the file.
_MULTIPART_EXTRA = 64 * 1024


class BodyLimitMiddleware(HttpMiddleware):
    """Counts and times a body while it arrives, whatever its headers say, and answers 413 or 408.

    A multipart body may be as long as an upload may be, any other as long as a document.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        super().__init__(app)
        self._limits = limits

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        is_multipart = headers.get(b"content-type", b"").strip().lower().startswith(b"multipart/")
        most = self._limits.upload_bytes + _MULTIPART_EXTRA if is_multipart else self._limits.body_bytes
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > most:
            if b"expect" not in headers:
                await drain(receive)
            raise _too_large(most)
        await BoundedBody(self._app, most, self._limits.body_seconds).run(scope, receive, send)


class TokenBuckets:
    """A bucket of tokens for each client, which fills at a steady rate and is emptied by requests.

    Only the clients seen last are remembered; one that is forgotten starts with a full bucket. Threads may share it.

    >>> from diptych.service.security.limits import TokenBuckets
    >>> buckets = TokenBuckets(rate=1.0, burst=2, clock=lambda: 0.0)
    >>> [buckets.take("a") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self, rate: float, burst: float, *, max_clients: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._max_clients = max_clients
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str, cost: float = 1.0) -> float:
        """Take tokens and return 0, or take none and return the seconds until there are enough."""
        with self._lock:
            now = self._clock()
            left, then = self._buckets.pop(client, (self._burst, now))
            left = min(self._burst, left + (now - then) * self._rate)
            is_enough = left >= cost
            self._buckets[client] = (left - cost if is_enough else left, now)
            if len(self._buckets) > self._max_clients:
                del self._buckets[next(iter(self._buckets))]
        return 0.0 if is_enough else (cost - left) / self._rate


# What a page loads many of at once and what costs next to nothing.
_CHEAP_COST = 0.05
_NETWORK_BITS = 64


class RateLimitMiddleware(HttpMiddleware):
    """Answers 429 to clients that ask faster than they may, and says when to come back."""

    def __init__(self, app: ASGIApp, rate: float, burst: int) -> None:
        super().__init__(app)
        self._buckets = TokenBuckets(rate, max(burst, 1))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        is_cheap = path.startswith("/static/") or path.endswith("/thumbnail")
        cost = 0.0 if path in ("/health", "/ready") else _CHEAP_COST if is_cheap else 1.0
        seconds = self._buckets.take(client_network(scope), cost) if cost else 0.0
        if seconds > 0:
            wait = str(math.ceil(seconds))
            headers = {"Retry-After": wait}
            raise Problem(429, "too-many-requests", f"Too many requests; go on in {wait} s.", headers=headers)
        await self._app(scope, receive, send)


def client_network(scope: Scope) -> str:
    """Return who asks: the address, or the network of an IPv6 address, of which one client has as many as it likes."""
    client = scope.get("client")
    address = client[0] if client else ""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return str(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> _NETWORK_BITS << _NETWORK_BITS))
    return str(parsed)


class ConcurrencyLimit:
    """Lets a few requests run and the others wait in line, where each costs a few kilobytes and no thread.

    More of them at once than there are cores only fight for the cores and hold memory meanwhile. Each client has a line
    of its own, and lines take turns, so that whoever asks for much waits for itself. Where no more may wait, a client
    takes the place of the last one in the longest line, unless that is its own. Whoever has left keeps no place.
    """

    def __init__(self, at_once: int, max_waiting: int = 1_000) -> None:
        self.at_once = self._free = at_once
        self._max_waiting = max_waiting
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.waiting = 0

    @asynccontextmanager
    async def slot(self, client: str = "", receive: Receive | None = None) -> AsyncIterator[None]:
        """Wait until a request of a client may run, and count as one that runs.

        ``receive`` says when the client leaves; its body must have been read before.
        """
        if self.waiting >= self._max_waiting:
            self._make_room(client)
        if self._free:
            self._free -= 1
        else:
            await self._turn(client, receive)
        try:
            yield
        finally:
            self._give_back()

    async def _turn(self, client: str, receive: Receive | None) -> None:
        turn = asyncio.get_running_loop().create_future()
        line = self._lines.setdefault(client, deque())
        line.append(turn)
        self.waiting += 1
        leaving = None if receive is None else asyncio.create_task(client_leaves(receive))

        def leave(_: asyncio.Task[None]) -> None:
            if not turn.done():
                turn.set_exception(ClientDisconnect())

        if leaving is not None:
            leaving.add_done_callback(leave)
        try:
            await turn
        except asyncio.CancelledError:
            # It may have come in the same moment.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give_back()
            raise
        finally:
            self.waiting -= 1
            if leaving is not None:
                leaving.cancel()
            if turn in line:
                line.remove(turn)
                if not line:
                    del self._lines[client]

    def _give_back(self) -> None:
        while self._lines:
            client, line = self._lines.popitem(last=False)
            turn = line.popleft()
            if line:
                self._lines[client] = line
            # It may have left in the same moment.
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _make_room(self, client: str) -> None:
        busy = Problem(
            503, "busy", "Too many requests are waiting; try again in a moment.", headers={"Retry-After": "2"}
        )
        longest = max(self._lines.values(), key=len, default=deque[asyncio.Future[None]]())
        if len(longest) <= len(self._lines.get(client, ())) + 1:
            raise busy
        last = longest.pop()
        if not last.done():
            last.set_exception(busy)
