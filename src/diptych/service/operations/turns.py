"""As many at once as there are cores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from diptych.service.problem import Problem

_MOST_WAITING = 1_000


class Turns:
    """Lets a few searches run and the others wait in line.

    Searches compute: more of them at once than there are cores only fight for the cores and hold memory meanwhile. In
    line, a request costs a few kilobytes and no thread.
    """

    def __init__(self, at_once: int, most_waiting: int = _MOST_WAITING) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_waiting = most_waiting
        self.waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        if self.waiting >= self._most_waiting:
            raise Problem(
                503, "busy", "Too many searches are waiting; try again in a moment.", headers={"Retry-After": "2"}
            )
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._free.release()


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
