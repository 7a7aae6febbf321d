"""The web server: uvicorn with bounds on connections, in all and of each client, and on the time they may wait."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from types import FrameType
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from diptych.service.problems import MEDIA_TYPE, Problem
from diptych.service.security.guards import SECURITY_HEADERS
from diptych.service.security.limits import client_network
from diptych.service.settings import Limits, Settings

_HEADER_SECONDS = 10.0
_STALL_SECONDS = 60.0


class BoundedProtocol(H11Protocol):
    """Keeps one client from taking all connections, and closes those that wait too long for their client.

    The server's own protocol waits for ever, so that a few hundred idle sockets would keep everyone else out. Beyond
    ``limits.connections``, and of one address beyond ``limits.connections_per_client``, a new connection takes the
    place of the one that has waited longest for its client; it is refused only where all others are being answered.
    The address of a proxy stands for many clients and has no limit of its own.
    """

    def __init__(self, limits: Limits, proxies: tuple[str, ...], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._proxies = proxies
        self._timer: asyncio.TimerHandle | None = None
        self.address = ""
        self.last_heard = 0.0

    @property
    def waits_for_client(self) -> bool:
        """Whether the next step is the client's: to ask, to send the rest of a body, or to take an answer."""
        is_asking = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
        return is_asking or self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.address = client_network({"client": self.client})
        self.last_heard = self.loop.time()
        if self._has_place():
            self._give_up_after(_HEADER_SECONDS)
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        self.last_heard = self.loop.time()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what has arrived; only a connection whose next request has begun and not ended its headers is timed."""
        super().handle_events()
        if self.flow.write_paused:
            # Whatever it says, it has to take its answer first.
            return
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None and self.conn.trailing_data[0]:
            self._give_up_after(_HEADER_SECONDS)

    def pause_writing(self) -> None:
        """Wait for a client that does not take its answer, but not for ever."""
        super().pause_writing()
        self._stop_waiting()
        self._give_up_after(_STALL_SECONDS)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._stop_waiting()

    def shutdown(self) -> None:
        """End what waits for its client, and tell an answer that goes on, such as events, that the server ends."""
        if self.cycle is not None:
            self.cycle.scope["state"]["is_ending"] = True
            if self.cycle.more_body and not self.cycle.response_started:
                self._refuse(Problem(503, "busy", "The service ends; send this again in a moment."))
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a problem document, as everything else."""
        self._refuse(Problem(400, "malformed-request", "This is no HTTP request that this service understands."))

    def _refuse(self, problem: Problem) -> None:
        body = json.dumps(problem.document()).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
        ]
        phrase = HTTPStatus(problem.status).phrase.encode()
        start = h11.Response(status_code=problem.status, headers=headers, reason=phrase)
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _has_place(self) -> bool:
        """Return True if there is room for this connection, which may cost another one its place."""
        others = [other for other in self.connections if isinstance(other, BoundedProtocol) and other is not self]
        of_client = [other for other in others if other.address == self.address]
        is_crowded = len(of_client) >= self._limits.connections_per_client
        if is_crowded and self.client is not None and not _is_among(self.client[0], self._proxies):
            others = of_client
        elif len(others) < self._limits.connections:
            return True
        counts = Counter(other.address for other in others)
        waiting = [other for other in others if other.waits_for_client and not other.transport.is_closing()]
        if not waiting:
            return False
        # Of whoever holds most, the one that has been silent longest.
        longest = min(waiting, key=lambda other: (-counts[other.address], other.last_heard))
        longest.transport.abort()
        self.connections.discard(longest)
        return True

    def _give_up_after(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            # What could not be sent so far would keep a connection that is merely closed.
            self.transport.abort()


def _is_among(host: str, proxies: Iterable[str]) -> bool:
    """Return True if a host is one of the addresses, or of the networks.

    >>> _is_among("10.1.2.3", ("127.0.0.1", "10.0.0.0/8")), _is_among("192.0.2.1", ("10.0.0.0/8",))
    (True, False)
    """
    for proxy in proxies:
        # What is neither is a name, which no connection comes from.
        with suppress(ValueError):
            if ip_address(host) in ip_network(proxy, strict=False):
                return True
    return False


# A service ends within ten seconds: this long for requests, then as long for jobs and watches, then for threads.
GRACE_SECONDS = 4
_IDLE_SECONDS = 60
_LONGEST_HEADERS = 32 * 1024
_THREAD_SECONDS = 2.0
_HEALTHCHECK_SECONDS = 30
_log = logging.getLogger("diptych.service")


def server_config(app: ASGIApp | Callable[[], ASGIApp], settings: Settings, *, factory: bool = False) -> uvicorn.Config:
    """Return how the server runs: quiet, patient with running requests, impatient with slow clients.

    With ``factory`` each worker makes its own ``app`` by calling it.
    """
    forwarders = list(settings.trusted_proxies)
    protocol = partial(BoundedProtocol, settings.limits, settings.trusted_proxies)
    return uvicorn.Config(
        app,
        factory=factory,
        workers=settings.workers,
        timeout_worker_healthcheck=_HEALTHCHECK_SECONDS,
        http=cast(type[asyncio.Protocol], protocol),
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
