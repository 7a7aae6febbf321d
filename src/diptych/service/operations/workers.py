"""Starting a service, in one process or in several: the supervisor, its workers, and what a worker does.

A worker is ``python -m diptych.service.operations.workers``. The supervisor starts it with the listening socket as an
open descriptor, and its settings as the first line of standard input. When the supervisor is gone, standard input ends
and so does the worker.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal

from prometheus_client.multiprocess import mark_process_dead

from diptych.errors import InvalidInputError
from diptych.service.operations.logging import SHARED_FOLDER_VARIABLE, LogFormat, configure_logging
from diptych.service.operations.server import GRACE_SECONDS, run_server
from diptych.service.settings import Settings, settings_from_json, settings_to_json

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_log = logging.getLogger("diptych.service")


class WorkerProcess:
    """Starts a worker, and starts it again when it has died, after a pause that grows while it keeps dying."""

    def __init__(
        self,
        environment: Mapping[str, str],
        name: str,
        settings: Settings,
        descriptor: int,
        *,
        log_format: LogFormat,
        quiet: bool,
    ) -> None:
        self.name = name
        self._settings = settings
        self._descriptor = descriptor
        self._environment = environment
        self._words = (log_format, "quiet" if quiet else "all")
        self._process: subprocess.Popen[str] | None = None
        self._started = 0.0
        self._pause = _FIRST_PAUSE_SECONDS
        self._start_again_at: float | None = None

    def start(self) -> None:
        """Start the process."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "diptych.service.operations.workers", str(self._descriptor), *self._words],
            stdin=subprocess.PIPE,
            text=True,
            pass_fds=[self._descriptor],
            env={**os.environ, **self._environment},
            # Signals of the terminal are for the supervisor, which ends its workers in order.
            start_new_session=True,
        )
        self._started = time.monotonic()
        self._start_again_at = None
        # One that has ended already is found dead at the next look.
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(settings_to_json(self._settings) + "\n")
                self._process.stdin.flush()

    def restart_if_dead(self) -> int | None:
        """Start the process again when it is time; return the number of one that was just found dead."""
        if self._process is None:
            return None
        if self._start_again_at is not None:
            if time.monotonic() >= self._start_again_at:
                try:
                    self.start()
                except OSError:
                    # A machine without memory for another process may have some later; the other workers go on.
                    self._start_again_at = time.monotonic() + self._pause
                    _log.exception("worker %s cannot be started; trying again in %.1f s", self.name, self._pause)
            return None
        status = self._process.poll()
        if status is None:
            return None
        if time.monotonic() - self._started >= _STEADY_SECONDS:
            self._pause = _FIRST_PAUSE_SECONDS
        self._start_again_at = time.monotonic() + self._pause
        _log.error("worker %s ended with status %d; it starts again in %.1f s", self.name, status, self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        return self._process.pid

    def terminate(self) -> None:
        """Ask the process to finish what it does and end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        """Wait for the end; after that time the process is killed."""
        if self._process is None:
            return
        try:
            self._process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            _log.error("worker %s does not end; it is killed", self.name)
            self._process.kill()
            self._process.wait()


_WATCH_SECONDS = 0.1
_EXTRA_SECONDS = 1.0


class Supervisor:
    """Keeps readers that share one listening socket and the one writer behind them alive.

    Both sockets belong to the supervisor: while a process starts again, its connections wait instead of failing.
    """

    def __init__(
        self, settings: Settings, listening: socket.socket, *, log_format: LogFormat = "text", quiet: bool = False
    ) -> None:
        self._settings = settings
        self._listening = listening
        self._log_format: LogFormat = log_format
        self._quiet = quiet
        self._is_ending = threading.Event()

    def run(self) -> None:
        """Serve until the process is told to end."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)
        # Only this user can enter: who reaches the writer's socket is taken for a reader.
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        is_usable = runtime and os.access(runtime, os.W_OK | os.X_OK)
        folder = Path(tempfile.mkdtemp(prefix="diptych-", dir=runtime if is_usable else None))
        try:
            self._run_in(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run_in(self, folder: Path) -> None:
        writer_socket = folder / "writer"
        metrics = folder / "metrics"
        metrics.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to_writer:
            to_writer.bind(str(writer_socket))
            to_writer.listen()
            environment = {SHARED_FOLDER_VARIABLE: str(metrics)}
            settings = replace(self._settings, session_folder=self._settings.session_folder or folder / "sessions")
            worker_of = partial(WorkerProcess, environment, log_format=self._log_format, quiet=self._quiet)
            writer = worker_of("writer", replace(settings, role="writer"), to_writer.fileno())
            reading = replace(settings, role="reader", writer_socket=writer_socket)
            readers = [
                worker_of(f"reader {number}", reading, self._listening.fileno())
                for number in range(1, self._settings.workers + 1)
            ]
            for worker in (writer, *readers):
                worker.start()
            self._watch((writer, *readers), metrics)
            self._listening.close()
            # The readers first: what they have handed over is still being written.
            _stop_all(readers)
            _stop_all([writer])

    def _watch(self, workers: Sequence[WorkerProcess], metrics: Path) -> None:
        while not self._is_ending.wait(_WATCH_SECONDS):
            for worker in workers:
                dead = worker.restart_if_dead()
                if dead is not None:
                    mark_process_dead(dead, str(metrics))  # type: ignore[no-untyped-call]

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending.set()


def _stop_all(workers: Sequence[WorkerProcess]) -> None:
    for worker in workers:
        worker.terminate()
    deadline = time.monotonic() + GRACE_SECONDS + _EXTRA_SECONDS
    for worker in workers:
        worker.wait(deadline - time.monotonic())


def launch(
    settings: Settings,
    listening: socket.socket,
    *,
    log_format: Literal["auto", "text", "json"] = "auto",
    quiet: bool = False,
) -> None:
    """Serve on a socket until the process is told to end: in this process, or in several that it looks after."""
    format: LogFormat = log_format if log_format != "auto" else "text" if sys.stderr.isatty() else "json"
    configure_logging(format, quiet=quiet)
    if settings.workers == 1:
        _serve(settings, listening)
        return
    if os.name != "posix":
        raise InvalidInputError("several workers share a socket, which this system cannot; leave out --workers")
    Supervisor(settings, listening, log_format=format, quiet=quiet).run()


def main(descriptor: int, format: LogFormat, quiet: bool) -> None:
    """Serve on an inherited socket."""
    settings = settings_from_json(sys.stdin.readline())
    configure_logging(format, quiet=quiet)
    threading.Thread(target=_stop_with_supervisor, name="supervisor-watch", daemon=True).start()
    _serve(settings, socket.socket(fileno=descriptor))


def _serve(settings: Settings, listening: socket.socket) -> None:
    # Imported where requests are answered: a supervisor needs no application.
    from diptych.service.app import create_app

    app = create_app(settings)
    run_server(app, settings, listening)


def _stop_with_supervisor() -> None:
    # From the descriptor itself: a thread that waits in a buffered reader keeps the interpreter from ending.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(int(sys.argv[1]), "json" if sys.argv[2] == "json" else "text", sys.argv[3] == "quiet")
