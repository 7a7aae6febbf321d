"""Starting a service: in this process, or in several that uvicorn looks after."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from uvicorn.supervisors import Multiprocess

from diptych.service.operations.logging import SHARED_FOLDER_VARIABLE, LogFormat, configure_logging
from diptych.service.operations.server import allow_many_connections, run_server, server_config
from diptych.service.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI


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
