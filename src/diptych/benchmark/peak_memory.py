"""How much memory a piece of work takes."""

from __future__ import annotations

import sys
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
    ...     block = bytearray(400_000_000)
    >>> memory.bytes is None or memory.bytes > 200_000_000
    True
    """

    bytes: int | None = None

    @property
    def megabytes(self) -> float:
        """The same in millions of bytes, NaN where the system does not tell."""
        return float("nan") if self.bytes is None else self.bytes / 1e6

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


def peak_resident_bytes() -> int:
    """Return the largest resident memory of this process so far.

    On Linux the kernel is asked for this process alone: what ``getrusage`` says includes the one that started it.
    """
    try:
        return _status_bytes("VmHWM")
    except (OSError, LookupError):
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage if sys.platform == "darwin" else usage * 1024
