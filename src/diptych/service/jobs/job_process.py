"""The process of one job, seen from the service."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from diptych.service.jobs.job import Job

_PATIENCE_SECONDS = 5.0
_LONGEST_LINE = 1 << 20
_LONGEST_MESSAGE = 500
_KEPT_LINES = 20


class JobProcess:
    """A job in a process of its own, which can be stopped at any moment because the store survives that.

    The process reports one JSON object per line; anything else it prints is thrown away, except for the last lines of
    its standard error, which explain a crash. It ends by itself when the service does, since its input closes then.
    """

    def __init__(self, collection: Path, job: Job) -> None:
        self.progress: tuple[int, int, str] = (0, 0, "starting")
        self.result: Mapping[str, Any] | None = None
        self.was_stopped = False
        self._failure: str | None = None
        self._last_lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._kill_at = float("inf")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "diptych.service.jobs.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Interrupting the service from a terminal must let it decide what becomes of its jobs.
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout, self._report), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stderr, self._last_lines.append), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self._send({"collection": str(collection), "kind": job.kind, "parameters": job.parameters})

    @property
    def error(self) -> str:
        """Why there is no result."""
        if self._failure is not None:
            return self._failure
        last = self._last_lines[-1].strip() if self._last_lines else "without a word"
        return f"The process of the job ended with status {self._process.returncode}: {last}"[:_LONGEST_MESSAGE]

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most that long, and say whether it has come."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            if time.monotonic() > self._kill_at:
                self._process.kill()
            return False
        for reader in self._readers:
            reader.join()
        return True

    def stop(self) -> None:
        """Ask the process to end, and end it should it not do so."""
        if not self.was_stopped:
            self.was_stopped = True
            self._kill_at = time.monotonic() + _PATIENCE_SECONDS
            self._process.terminate()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # It has ended already, and its last lines say why.
            return

    @staticmethod
    def _read(stream: IO[bytes] | None, take: Any) -> None:
        assert stream is not None
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                take(line.decode("utf-8", "replace"))

    def _report(self, line: str) -> None:
        try:
            report = json.loads(line)
            if "result" in report:
                self.result = dict(report["result"])
            elif "error" in report:
                self._failure = str(report["error"])[:_LONGEST_MESSAGE]
            else:
                message = str(report["message"])[:_LONGEST_MESSAGE]
                self.progress = int(report["done"]), int(report["total"]), message
        except (ValueError, TypeError, KeyError):
            # A library printed something; reports are ours alone.
            return
