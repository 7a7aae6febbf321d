"""One process of a service that has several: ``python -m diptych.service.operations.worker``.

It is started by the supervisor, with the listening socket as an open descriptor, and its settings as the first line of
standard input. When the supervisor is gone, standard input ends and so does the worker.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

from diptych.service.operations.logs import LogFormat, set_up_logs
from diptych.service.operations.server import run_server
from diptych.service.operations.settings_document import settings_from_json


def main(descriptor: int, format: LogFormat, quiet: bool) -> None:
    """Serve on an inherited socket."""
    settings = settings_from_json(sys.stdin.readline())
    set_up_logs(format, quiet=quiet)
    threading.Thread(target=_end_with_supervisor, name="supervisor-watch", daemon=True).start()
    run_server(settings, socket.socket(fileno=descriptor))


def _end_with_supervisor() -> None:
    # From the descriptor itself: a thread that waits in a buffered reader keeps the interpreter from ending.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(int(sys.argv[1]), "json" if sys.argv[2] == "json" else "text", sys.argv[3] == "quiet")
