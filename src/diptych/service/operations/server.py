"""The web server that runs an application."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from diptych.service.operations.bounded_protocol import BoundedProtocol
from diptych.service.settings import Settings

GRACE_SECONDS = 30
_IDLE_SECONDS = 60
_LONGEST_HEADERS = 32 * 1024
_THREAD_SECONDS = 5.0
_log = logging.getLogger("diptych.service")


def server_settings(app: ASGIApp, settings: Settings) -> uvicorn.Config:
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


def run_server(settings: Settings, listening: socket.socket) -> None:
    """Serve until the process is told to end; then finish what is running and leave with exit status 0."""
    from diptych.service.app import create_app

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    server = uvicorn.Server(server_settings(create_app(settings), settings))
    try:
        # The server catches the signals itself meanwhile, and sends them again when it is done.
        server.run(sockets=[listening])
    finally:
        _wait_for_threads()


def _leave(number: int, frame: FrameType | None) -> None:
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
