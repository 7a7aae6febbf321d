"""The web server: uvicorn with bounds on connections and on the time to send headers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from diptych.service.problems import MEDIA_TYPE, Problem
from diptych.service.security.headers import SECURITY_HEADERS
from diptych.service.settings import Settings

_HEADER_SECONDS = 10.0
_MOST_CONNECTIONS = 768


class BoundedProtocol(H11Protocol):
    """Closes connections beyond what memory allows, and those whose headers take too long.

    The server's own protocol waits for ever for these, so that a few hundred idle sockets would keep everyone else out.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        _send_at_once(transport.get_extra_info("socket"))
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
        start = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
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


def _send_at_once(connection: Any) -> None:
    """Keep the body of an answer from waiting until its headers are acknowledged, which takes 40 ms.

    asyncio does this for sockets that it has opened itself, and takes ours for something else.
    """
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


GRACE_SECONDS = 30
_IDLE_SECONDS = 60
_LONGEST_HEADERS = 32 * 1024
_THREAD_SECONDS = 5.0
_log = logging.getLogger("diptych.service")


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return how the server runs: one event loop, quiet, patient with running requests, impatient with slow ones."""
    # Readers reach the writer through a socket that only they can open, so their word is taken.
    forwarders = ["*"] if settings.role == "writer" else list(settings.trusted_proxies)
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=bool(forwarders),
        forwarded_allow_ips=forwarders,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
    )


def run_server(app: ASGIApp, settings: Settings, listening: socket.socket) -> None:
    """Serve until the process is told to end; then finish what is running and leave with exit status 0."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit)
    server = uvicorn.Server(server_config(app, settings))
    try:
        # The server catches the signals itself meanwhile, and sends them again when it is done.
        server.run(sockets=[listening])
    finally:
        _wait_for_threads()


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _wait_for_threads() -> None:
    """Let handlers end that outlived the patience of the server, then leave in spite of them."""
    deadline = time.monotonic() + _THREAD_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        _log.error("a request did not end in time; leaving without it")
        logging.shutdown()
        os._exit(1)
