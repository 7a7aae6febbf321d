"""Errors of tables and of full disks as one clear sentence each, and the room that is kept for making room."""

from __future__ import annotations

import errno
import inspect
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from diptych.errors import CollectionError, DiptychError, NoRoomError

# So much is kept for what makes room: removing, and repairing.
LEAST_ROOM = 1 << 20
_NO_ROOM_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_ROOM = re.compile(r"No space left|os error (27|28|122)\b|[Dd]isk quota exceeded")


def engine_says(problem: BaseException) -> str:
    """Return the first line of what the engine says, without the places in its own sources."""
    return str(problem).partition("\n")[0].partition(", /")[0]


Kind = TypeVar("Kind", bound=type)


def with_clear_errors(kind: Kind) -> Kind:
    """Let the public methods of a class that reads or writes tables raise errors of ours alone, one sentence each.

    The engine and what reads its rows fail on damaged files in every way they can, by a panic too; a full disk is among
    the ways in which it fails to write.
    """
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(kind, name, _guarded_steps(method) if inspect.isgeneratorfunction(method) else _guarded(method))
    return kind


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def work(*given: Any, **named: Any) -> Any:
        with _clear_errors(given[0]):
            return method(*given, **named)

    return work


def _guarded_steps(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(method)
    def work(*given: Any, **named: Any) -> Iterator[Any]:
        steps = method(*given, **named)
        while True:
            # What is done with a step is not the engine's.
            with _clear_errors(given[0]):
                try:
                    step = next(steps)
                except StopIteration:
                    return
            yield step

    return work


@contextmanager
def _clear_errors(owner: Any) -> Iterator[None]:
    try:
        yield
    except DiptychError:
        raise
    except (ValueError, RuntimeError, OSError, LookupError, TypeError) as problem:
        raise _clear_error(owner.folder, problem) from problem
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise _clear_error(owner.folder, problem) from None


def is_no_room(problem: BaseException) -> bool:
    """Return True if an error means that the disk is full, or what a user may have of it."""
    return getattr(problem, "errno", None) in _NO_ROOM_CODES or bool(_NO_ROOM.search(str(problem)))


def _clear_error(folder: Path, problem: BaseException) -> CollectionError:
    if is_no_room(problem):
        return NoRoomError(folder.parent, missing_bytes(folder))
    said = engine_says(problem)
    return CollectionError(f"{folder} cannot be used ({said}); `diptych verify` says what is damaged")


def missing_bytes(folder: Path, needed: int = LEAST_ROOM) -> int:
    """Return how many bytes a disk lacks of those that are needed; a few where others have just freed some."""
    return max(needed - shutil.disk_usage(folder).free, 1 << 12)


def check_room(folder: Path, n_bytes: int) -> None:
    """Refuse to begin to write so much where there is no room for it."""
    needed = 2 * n_bytes + LEAST_ROOM // 4
    if shutil.disk_usage(folder).free < needed:
        raise NoRoomError(folder.parent, missing_bytes(folder, needed))


def is_nearly_full(folder: Path) -> bool:
    """Return True if a disk has no room for what can wait."""
    return shutil.disk_usage(folder).free < 4 * LEAST_ROOM


def keep_reserve(path: Path) -> None:
    """Take up some room, which :func:`spend_reserve` gives back when the disk is full."""
    if path.exists():
        return
    try:
        with path.open("xb") as stream:
            try:
                os.posix_fallocate(stream.fileno(), 0, LEAST_ROOM)
            except OSError as problem:
                if is_no_room(problem):
                    raise
                # Not every file system can promise room.
                stream.write(bytes(LEAST_ROOM))
    except OSError as problem:
        path.unlink(missing_ok=True)
        if not is_no_room(problem):
            raise
        raise NoRoomError(path.parent, missing_bytes(path.parent)) from None


def spend_reserve(path: Path) -> None:
    """Make room for what makes room, where there is none."""
    if shutil.disk_usage(path.parent).free < LEAST_ROOM:
        path.unlink(missing_ok=True)
