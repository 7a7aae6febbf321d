"""One writer at a time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.collection.collection_error import CollectionError

# Between two attempts to get the lock.
_PAUSE = 0.02


@contextmanager
def write_lock(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the operating system's lock on ``path``, or raise when another writer still holds it after ``wait`` seconds.

    The system lets go of the lock when a process ends, however it ends, so a killed writer blocks nobody.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        deadline = time.monotonic() + wait
        while not _is_locked(handle):
            if time.monotonic() >= deadline:
                raise CollectionError(
                    f"{path.parent} is being written by another process or thread; "
                    "wait until it has finished and try again"
                )
            time.sleep(_PAUSE)
        yield
    finally:
        # Closing the file releases the lock.
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        _lock(handle)
    except OSError:
        return False
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
