"""Several processes, one service."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead

from diptych.service.operations.logs import LogFormat
from diptych.service.operations.metrics import SHARED_FOLDER_VARIABLE
from diptych.service.operations.server import GRACE_SECONDS
from diptych.service.operations.worker_process import WorkerProcess
from diptych.service.settings import Settings

_LOOK_SECONDS = 0.1
_EXTRA_SECONDS = 10.0
_log = logging.getLogger("diptych.service")


class Supervisor:
    """Keeps readers that share one listening socket and the one writer behind them alive.

    Both sockets belong to the supervisor: while a process starts again, its connections wait instead of failing. When
    told to end, the readers finish first, because what they have handed over is still being written.
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
        folder = Path(tempfile.mkdtemp(prefix="diptych-", dir=_runtime_folder()))
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
            writer = self._worker("writer", replace(self._settings, role="writer"), to_writer, environment)
            reading = replace(self._settings, role="reader", writer_socket=writer_socket)
            readers = [
                self._worker(f"reader {number}", reading, self._listening, environment)
                for number in range(1, self._settings.workers + 1)
            ]
            for worker in (writer, *readers):
                worker.start()
            self._look_after((writer, *readers), metrics)
            self._listening.close()
            _end_all(readers)
            _end_all([writer])

    def _worker(
        self, name: str, settings: Settings, listening: socket.socket, environment: dict[str, str]
    ) -> WorkerProcess:
        descriptor = listening.fileno()
        return WorkerProcess(name, settings, descriptor, environment, log_format=self._log_format, quiet=self._quiet)

    def _look_after(self, workers: Sequence[WorkerProcess], metrics: Path) -> None:
        while not self._is_ending.wait(_LOOK_SECONDS):
            for worker in workers:
                dead = worker.look_after()
                if dead is not None:
                    mark_process_dead(dead, str(metrics))  # type: ignore[no-untyped-call]

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending.set()


def _end_all(workers: Sequence[WorkerProcess]) -> None:
    for worker in workers:
        worker.ask_to_end()
    deadline = time.monotonic() + GRACE_SECONDS + _EXTRA_SECONDS
    for worker in workers:
        worker.wait(deadline - time.monotonic())


def _runtime_folder() -> str | None:
    """Return the folder that the system keeps for this user's running programs; None: that of temporary files."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    return folder if folder and os.access(folder, os.W_OK | os.X_OK) else None
