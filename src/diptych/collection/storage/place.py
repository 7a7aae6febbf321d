"""The lock of the one writer of a collection, in which those who wait stand in line, and notes of long reads."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from diptych.collection.storage.layout import search_package
from diptych.errors import CollectionBusyError

_LOOK_SECONDS = 0.01
_READING = "reading"


@contextmanager
def write_lock(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the system's lock on ``path``, or raise after ``wait`` seconds; a writer that is killed blocks nobody.

    Those who wait stand in line, and whoever came first is first, in whichever process. Only its owner may open the
    file: whoever can read a file can lock it, and would keep everybody from writing.
    """
    filelock = search_package("filelock")
    lock = filelock.FileLock(path, mode=0o600, poll_interval=_LOOK_SECONDS, thread_local=False)
    deadline = time.monotonic() + max(0.0, wait)
    try:
        with _turn(path, deadline):
            held = lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
    except filelock.Timeout:
        raise CollectionBusyError(
            f"{path.parent} is being written by another process or thread{_holder(path)}; wait until it has finished, "
            "or end it if it is stuck, and try again"
        ) from None
    with held:
        # What says who holds it is of use to others, and whoever cannot write it still has the lock.
        with suppress(OSError):
            path.chmod(0o600)
            program = Path(sys.argv[0] if sys.argv and sys.argv[0] else sys.executable).name
            path.write_text(json.dumps({"pid": os.getpid(), "program": program, "since": time.time()}))
        yield


@contextmanager
def _turn(path: Path, deadline: float) -> Iterator[None]:
    """Wait until nobody is left who came before.

    Each has a ticket, a locked file named by the time; one that nobody locks is of a process that ended.
    """
    with _ticket(path) as place:
        while (first := _first_ticket(path)) != place.name:
            if _is_left_behind(path.with_name(first)):
                continue
            if time.monotonic() >= deadline:
                raise search_package("filelock").Timeout(str(path))
            time.sleep(_LOOK_SECONDS)
        yield


def is_awaited(path: Path) -> bool:
    """Return True if another process waits for a lock that is held."""
    return bool(_tickets(path))


@contextmanager
def long_read(store: Path) -> Iterator[None]:
    """Let the writer of a store know that somebody reads it, for long; who may not write there reads without."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(_ticket(store / _READING))
        yield


def is_being_read(store: Path) -> bool:
    """Return True if a :func:`long_read` goes on, in whichever process."""
    return not all(_is_left_behind(store / name) for name in _tickets(store / _READING))


def _is_left_behind(ticket: Path) -> bool:
    """Return True if a ticket is of a process that ended, and remove it; that of another user cannot be told."""
    with suppress(OSError), search_package("filelock").FileLock(ticket, timeout=0.0, mode=0o600):
        ticket.unlink(missing_ok=True)
        return True
    return False


def _first_ticket(path: Path) -> str:
    return min(_tickets(path))


def _tickets(path: Path) -> list[str]:
    return [name for name in os.listdir(path.parent) if name.startswith(f"{path.name}.")]


@contextmanager
def _ticket(path: Path) -> Iterator[Path]:
    """Draw a ticket, which is locked before it has its name: nobody takes it for one left behind."""
    drawn = f"{time.time_ns():020d}-{os.getpid()}-{threading.get_ident()}"
    unnamed, place = path.with_name(f"{path.name}-{drawn}"), path.with_name(f"{path.name}.{drawn}")
    with search_package("filelock").FileLock(unnamed, mode=0o600, timeout=0.0, thread_local=False):
        unnamed.rename(place)
        try:
            yield place
        finally:
            place.unlink(missing_ok=True)


def _holder(path: Path) -> str:
    """Return what the holder of the lock has noted about itself; it is empty without a note."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json.loads(path.read_text(encoding="utf-8"))
        since = datetime.fromtimestamp(float(note["since"]), UTC)
        return f" ({note['program']}, process {note['pid']}, since {since:%Y-%m-%d %H:%M:%S} UTC)"
    return ""
