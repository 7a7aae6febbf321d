"""HTTP as the server speaks it, with bounds on time and connections."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from diptych.service.problem import Problem
from diptych.service.problem_answers import MEDIA_TYPE
from diptych.service.security.security_headers import SECURITY_HEADERS

_HEADER_SECONDS = 10.0
_MOST_CONNECTIONS = 768


class BoundedProtocol(H11Protocol):
    """Closes connections that take too long to say what they want, and those beyond what memory allows.

    The server's own protocol waits for ever for the rest of a request's headers, so that a few hundred idle sockets
    would keep everyone else out.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()
            return
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_expecting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what has arrived; only a connection whose next request has begun and not ended its headers is timed."""
        super().handle_events()
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            self._stop_expecting()
        elif self._header_timer is None and self.conn.trailing_data[0]:
            self._expect_headers()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a problem document, as everything else."""
        problem = Problem(400, "malformed-request", "This is no HTTP request that this service understands.")
        body = json.dumps(problem.document()).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_headers(self) -> None:
        self._header_timer = self.loop.call_later(_HEADER_SECONDS, self._give_up)

    def _stop_expecting(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing():
            self.transport.close()
