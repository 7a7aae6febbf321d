"""How much memory a piece of work takes."""

from __future__ import annotations

import resource
import sys
from types import TracebackType


class PeakMemory:
    """By how many bytes a piece of work raised the peak of the resident memory of this process.

    Work that stays below an earlier peak shows 0; measure it in a process of its own.
    """

    bytes: int = 0

    @property
    def megabytes(self) -> float:
        """The same in millions of bytes."""
        return self.bytes / 1e6

    def __enter__(self) -> PeakMemory:
        self._start = peak_resident_bytes()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bytes = peak_resident_bytes() - self._start


def peak_resident_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024
