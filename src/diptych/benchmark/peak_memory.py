"""How much memory a piece of work takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

_STATUS = Path("/proc/self/status")

_RESET = Path("/proc/self/clear_refs")

_FORGET_PEAK = "5"


class PeakMemory:
    """By how many bytes the resident memory of this process rose above its level at the start, at most.

    The kernel keeps the high-water mark, so that no moment is missed; it is set back at the start. What the work takes
    from memory that the process held free already is not seen, and what other threads take is. Where the system does
    not tell, as outside Linux, ``bytes`` is None.

    >>> from diptych.benchmark.peak_memory import PeakMemory
    >>> with PeakMemory() as memory:
    ...     block = bytearray(50_000_000)
    >>> memory.bytes is None or memory.bytes > 40_000_000
    True
    """

    bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        try:
            _RESET.write_text(_FORGET_PEAK, encoding="ascii")
            self._start = _status_bytes("VmRSS")
        except (OSError, LookupError):
            self._start = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._start is not None:
            self.bytes = max(0, _status_bytes("VmHWM") - self._start)

    _start: int | None


def _status_bytes(field: str) -> int:
    """Return a size from the status of the process, which the kernel prints in units of 1,024 bytes."""
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)


_SAMPLING_SECONDS = 0.01


class SampledPeakMemory:
    """The most resident memory while a step ran, over what there was before, in megabytes; NaN where it is not told.

    The operating system is asked a hundred times a second, which sees what libraries in other languages take too, but
    not memory that was taken from what an earlier step had left.
    """

    def __init__(self) -> None:
        self.megabytes = float("nan")

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch what happens inside."""
        before = _resident_kilobytes()
        if before is None:
            yield
            return
        highest = [before]
        done = threading.Event()

        def look() -> None:
            while not done.wait(_SAMPLING_SECONDS):
                highest[0] = max(highest[0], _resident_kilobytes() or 0)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            self.megabytes = (max(highest[0], _resident_kilobytes() or 0) - before) / 1000


def _resident_kilobytes() -> int | None:
    """Return resident kilobytes, or None on systems without that file."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), None)
