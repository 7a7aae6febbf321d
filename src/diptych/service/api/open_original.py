"""Opening the file of an item, and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from diptych.collection import Collection, Item
from diptych.service.problem import Problem

_OPEN_FILES = Path("/proc/self/fd")


def open_original(collection: Collection, item: Item) -> BinaryIO:
    """Open the picture of an item, which must lie inside the root of the collection after all links are followed.

    The file is opened first and judged afterwards by what was opened, so that nobody can exchange it in between.
    """
    path = collection.path_of(item)
    if path is None:
        raise Problem(404, "no-picture", f"Item {item.id!r} is a text and has no picture; read its captions.")
    try:
        # Opening must never wait, should the file have become a pipe.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        raise _gone(item) from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _gone(item)
        if not _is_inside(_real_path(handle, path), collection):
            detail = f"The file of item {item.id!r} lies outside the folder of the collection and is not handed out."
            raise Problem(403, "outside-the-collection", detail)
    except Problem:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def original_tag(item: Item, file: BinaryIO) -> str:
    """Return the ETag of an opened picture: its content as stored, or another one where the file has changed since."""
    status = os.fstat(file.fileno())
    if (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns):
        return f'"{item.content_hash}"'
    return f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'


def _gone(item: Item) -> Problem:
    detail = (
        f"The file of item {item.id!r} is gone or cannot be read; a job of kind index brings the collection up to date."
    )
    return Problem(404, "original-gone", detail)


def _real_path(handle: int, path: Path) -> Path | None:
    """Return where the opened file really lies, or None when that cannot be said for sure."""
    if _OPEN_FILES.is_dir():
        return Path(os.readlink(_OPEN_FILES / str(handle)))
    real = Path(os.path.realpath(path))
    try:
        return real if os.path.samestat(os.lstat(real), os.fstat(handle)) else None
    except OSError:
        return None


def _is_inside(path: Path | None, collection: Collection) -> bool:
    root, own = collection.root.resolve(), collection.folder.resolve()
    # The collection's own folder often lies in the root; it holds the click log and is nobody's picture.
    return path is not None and path.is_relative_to(root) and not path.is_relative_to(own)
