"""What a job's process says."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, TextIO

_PAUSE_SECONDS = 0.1


class Reporter:
    """Writes the progress and the end of a job as JSON lines, not more often than anyone reads them.

    >>> import sys
    >>> from diptych.service.jobs.reporter import Reporter
    >>> Reporter(sys.stdout).advance(1, 2, "reading")
    {"done": 1, "total": 2, "message": "reading"}
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._message = ""
        self._last = float("-inf")

    def advance(self, done: int, total: int, message: str | None = None) -> None:
        """Say how much is done; the message stays until there is another."""
        is_new = message is not None and message != self._message
        self._message = self._message if message is None else message
        if is_new or done >= total or time.monotonic() - self._last >= _PAUSE_SECONDS:
            self._last = time.monotonic()
            self._write({"done": done, "total": total, "message": self._message})

    def note(self, message: str) -> None:
        """Say what is being done, without a count."""
        self.advance(0, 0, message)

    def finished(self, result: Mapping[str, Any]) -> None:
        """Hand over the result."""
        self._write({"result": result})

    def failed(self, error: str) -> None:
        """Say why there is none."""
        self._write({"error": error})

    def _write(self, report: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(report) + "\n")
        self._stream.flush()
