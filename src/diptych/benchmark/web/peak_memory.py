"""How much memory a step takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_EVERY = 0.01


class PeakMemory:
    """The most resident memory while a step ran, over what there was before, in megabytes; NaN where it is not told.

    The operating system is asked a hundred times a second, which sees what libraries in other languages take too, but
    not memory that was taken from what an earlier step had left.
    """

    def __init__(self) -> None:
        self.megabytes = float("nan")

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch what happens inside."""
        before = _resident()
        if before is None:
            yield
            return
        highest = [before]
        done = threading.Event()

        def look() -> None:
            while not done.wait(_EVERY):
                highest[0] = max(highest[0], _resident() or 0)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            self.megabytes = (max(highest[0], _resident() or 0) - before) / 1000


def _resident() -> int | None:
    """Return resident kilobytes, or None on systems without that file."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), None)
