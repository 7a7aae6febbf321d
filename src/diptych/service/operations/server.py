"""The web server: uvicorn in this process, or in several that it looks after, on one socket."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from diptych.errors import InvalidInputError
from diptych.service.operations.logging import SHARED_FOLDER_VARIABLE, LogFormat, configure_logging
from diptych.service.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_FILES = 65_536
MAX_HEADER_BYTES = 32 * 1024
STALLED_SECONDS = 60
IDLE_SECONDS = 60
HEALTHCHECK_SECONDS = 30
# A service ends within ten seconds: this long for requests, then as long for jobs and watches, then for threads.
GRACE_SECONDS = 4
THREAD_SECONDS = 2.0
_log = logging.getLogger("diptych.service")


def launch(
    settings: Settings,
    listening: socket.socket,
    *,
    log_format: Literal["auto", "text", "json"] = "auto",
    quiet: bool = False,
) -> None:
    """Serve on a socket until the process is told to end: in this process, or in several that share the socket."""
    format: LogFormat = log_format if log_format != "auto" else "text" if sys.stderr.isatty() else "json"
    configure_logging(format, quiet=quiet)
    allow_many_connections()
    if settings.workers == 1:
        # Imported where requests are answered: a supervisor needs no application.
        from diptych.service.app import create_app

        run_server(create_app(settings), settings, listening)
        return
    with tempfile.TemporaryDirectory(prefix="diptych-", ignore_cleanup_errors=True) as folder:
        # Workers inherit it and add up their numbers there.
        os.environ[SHARED_FOLDER_VARIABLE] = folder
        settings = settings.model_copy(update={"session_folder": settings.session_folder or Path(folder) / "sessions"})
        config = server_config(partial(worker_app, settings, format, quiet), settings, factory=True)
        Multiprocess(config, sockets=[listening]).run()


def worker_app(settings: Settings, format: LogFormat, quiet: bool) -> FastAPI:
    """Return the application of one of several workers, which ends with the process that looks after them."""
    from diptych.service.app import create_app

    configure_logging(format, quiet=quiet)
    threading.Thread(target=_stop_with_supervisor, name="supervisor-watch", daemon=True).start()
    return create_app(settings)


def _stop_with_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise an error that names a port that is free.

    Connections inherit its options: the kernel ends those whose client does not take its answer for a minute.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, UnicodeError) as problem:
        reason = problem.errno if isinstance(problem, OSError) else None
        if reason == errno.EADDRINUSE:
            with socket.create_server((host, 0), family=family) as other:
                free = other.getsockname()[1]
            raise InvalidInputError(f"port {port} is in use; {free} is free: --port {free}") from None
        if reason == errno.EACCES:
            raise InvalidInputError(f"port {port} is for the system; choose one above 1023") from None
        raise InvalidInputError(f"cannot listen on {host}: {problem}; give an address such as 127.0.0.1") from None
    # Otherwise the body of an answer waits 40 ms for the client to acknowledge its headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * STALLED_SECONDS)
    return listening


def allow_many_connections() -> None:
    """Raise the number of files that this process may open, so that idle connections leave room for others."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def server_config(app: ASGIApp | Callable[[], ASGIApp], settings: Settings, *, factory: bool = False) -> uvicorn.Config:
    """Return how the server runs: quiet, patient with running requests, impatient with slow clients.

    With ``factory`` each worker makes its own ``app`` by calling it.
    """
    forwarders = list(settings.trusted_proxies)
    return uvicorn.Config(
        app,
        factory=factory,
        workers=settings.workers,
        timeout_worker_healthcheck=HEALTHCHECK_SECONDS,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=bool(forwarders),
        forwarded_allow_ips=forwarders,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
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
    deadline = time.monotonic() + THREAD_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        _log.error("a request did not end in time; leaving without it")
        logging.shutdown()
        os._exit(1)
