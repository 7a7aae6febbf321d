"""Sessions of networks whose weights are mapped from a file, and letting go of their tables of words.

A table with a row for every word is mapped page by page as words are met, with fifteen pages around each one, and
would stay in the memory of a process until it ends. What is let go of stays in the system's cache of files: it is
mapped again when it is needed, without being read again, and the system may take it for something else before.
Matrices, which are smaller, are read whole in every run and stay.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

_MAPS, _DETAILED_MAPS = Path("/proc/self/maps"), Path("/proc/self/smaps")
# What madvise of Linux calls it.
_DONT_NEED = 4
_TABLE_BYTES = 16 << 20

# Addresses from a first one on, up to one that is none of them any more.
Places = list[tuple[int, int]]


class MappedSession:
    """A session that ``open`` makes, with the places at which it has mapped tables of words from ``file``."""

    def __init__(self, file: Path, open: Callable[[], Any]) -> None:
        self.file = file.resolve()
        # Two sessions of one file must not take what the other one maps for their own.
        with _opening.setdefault(self.file, threading.Lock()):
            before = _mapped(self.file)
            self.session = open()
            new = without(_mapped(self.file), before)
        self._places = [(start, end) for start, end in new if end - start >= _TABLE_BYTES]
        self._is_checked = False
        _sessions.add(self)

    def let_go(self) -> None:
        """Let go of its tables, but for those that it wrote to when it was opened: these are in no file."""
        if self._places and not self._is_checked:
            # Only once: the system takes long to tell. A session that runs reads its weights, perhaps in many threads.
            self._places = common(self._places, unwritten(_lines(_DETAILED_MAPS), str(self.file)))
            self._is_checked = True
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        for start, end in self._places:
            advise(start, end - start, _DONT_NEED)


_opening: dict[Path, threading.Lock] = {}
_sessions: WeakSet[MappedSession] = WeakSet()


def let_go_of_tables() -> None:
    """Let go of the tables of words of all sessions, which may run; nothing happens where the system cannot."""
    # Each is held meanwhile: the places of one that is gone may be anybody's.
    for session in list(_sessions):
        with suppress(AttributeError, TypeError):
            session.let_go()


def without(places: Places, others: Places) -> Places:
    """Return the parts of places that lie in no other ones.

    >>> without([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(0, 2), (4, 8), (25, 30)]
    """
    for start, end in others:
        cut = (part for first, last in places for part in ((first, min(last, start)), (max(first, end), last)))
        places = [(first, last) for first, last in cut if first < last]
    return places


def common(places: Places, others: Places) -> Places:
    """Return the parts of places that lie in other ones as well.

    >>> common([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(2, 4), (8, 10), (20, 25)]
    """
    pairs = ((max(first, start), min(last, end)) for first, last in places for start, end in others)
    return [(first, last) for first, last in pairs if first < last]


def unwritten(lines: Iterable[str], file: str) -> Places:
    """Return where a file is mapped and no page differs from it, from the lines of ``smaps``."""
    found: dict[tuple[int, int], None] = {}
    place = None
    for line in lines:
        first, *values = line.split(None, 5)
        if not first.endswith(":"):
            place = _place(first) if values[4:] == [file] else None
            if place is not None:
                found[place] = None
        elif place is not None and first in ("Anonymous:", "Swap:") and values[0] != "0":
            found.pop(place, None)
    return list(found)


def _mapped(file: Path) -> Places:
    name = str(file)
    fields = (line.split(None, 5) for line in _lines(_MAPS) if line.endswith(name))
    return [_place(first) for first, *values in fields if values[4:] == [name]]


def _lines(maps: Path) -> list[str]:
    try:
        return maps.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _place(addresses: str) -> tuple[int, int]:
    start, end = addresses.split("-")
    return int(start, 16), int(end, 16)
