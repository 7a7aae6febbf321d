"""A worker as its supervisor sees it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

from diptych.service.operations.logs import LogFormat
from diptych.service.operations.settings_document import settings_to_json
from diptych.service.settings import Settings

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_log = logging.getLogger("diptych.service")


class WorkerProcess:
    """Starts a worker, and starts it again when it has died, after a pause that grows while it keeps dying."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        descriptor: int,
        environment: Mapping[str, str],
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

    @property
    def pid(self) -> int | None:
        """The present process."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process."""
        words = [sys.executable, "-m", "diptych.service.operations.worker", str(self._descriptor), *self._words]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            text=True,
            pass_fds=[self._descriptor],
            env={**os.environ, **self._environment},
            # Signals of the terminal are for the supervisor, which ends its workers in order.
            start_new_session=True,
        )
        self._started = time.monotonic()
        self._start_again_at = None
        if self._process.stdin is not None:
            self._process.stdin.write(settings_to_json(self._settings) + "\n")
            self._process.stdin.flush()

    def look_after(self) -> int | None:
        """Start the process again when it is time; return the number of one that was just found dead."""
        if self._process is None:
            return None
        if self._start_again_at is not None:
            if time.monotonic() >= self._start_again_at:
                self.start()
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

    def ask_to_end(self) -> None:
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
