"""Starting a service, in one process or in several."""

from __future__ import annotations

import os
import socket
import sys
from typing import Literal

from diptych.errors import InvalidInputError
from diptych.service.operations.logs import LogFormat, set_up_logs
from diptych.service.settings import Settings


def launch(
    settings: Settings,
    listening: socket.socket,
    *,
    log_format: Literal["auto", "text", "json"] = "auto",
    quiet: bool = False,
) -> None:
    """Serve on a socket until the process is told to end.

    One worker does everything in this process; with several, this process looks after them and a writer.
    """
    format: LogFormat = _usual_format() if log_format == "auto" else log_format
    set_up_logs(format, quiet=quiet)
    if settings.workers == 1:
        from diptych.service.operations.server import run_server

        run_server(settings, listening)
        return
    if os.name != "posix":
        raise InvalidInputError("several workers share a socket, which this system cannot; leave out --workers")
    from diptych.service.operations.supervisor import Supervisor

    Supervisor(settings, listening, log_format=format, quiet=quiet).run()


def _usual_format() -> LogFormat:
    return "text" if sys.stderr.isatty() else "json"
