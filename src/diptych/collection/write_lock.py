"""One writer at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.collection.collection_error import CollectionError


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Hold the operating system's lock on ``path``, or raise at once when another writer holds it.

    The system lets go of the lock when a process ends, however it ends, so a killed writer blocks nobody.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        try:
            _lock(handle)
        except OSError:
            raise CollectionError(
                f"{path.parent} is being written by another process or thread; wait until it has finished and try again"
            ) from None
        yield
    finally:
        # Closing the file releases the lock.
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
