"""Sending the picture file of an item: opened safely, whole or in part."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from diptych.collection import Collection, Item
from diptych.service.problems import Problem

_OPEN_FILES = Path("/proc/self/fd")


def open_original(collection: Collection, item: Item) -> tuple[BinaryIO, str]:
    """Open the picture of an item, and return it with its ETag."""
    path = collection.path_of(item)
    if path is None:
        raise Problem(404, "no-picture", f"Item {item.id!r} is a text and has no picture; read its captions.")
    file = _open_inside(collection, item, path)
    return file, _tag(item, file)


def _open_inside(collection: Collection, item: Item, path: Path) -> BinaryIO:
    """Open a picture, which must lie inside the root of the collection after all links are followed."""
    try:
        # Opening must never wait, should the file have become a pipe.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        raise _gone(item) from None
    # Judged by what was opened, so that nobody can exchange the file in between.
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _gone(item)
        if not _is_inside(_real_path(handle, path), collection):
            raise _outside(item)
    except Problem:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _tag(item: Item, file: BinaryIO) -> str:
    """Return the ETag of an opened picture: its content as stored, or another one where the file has changed since."""
    status = os.fstat(file.fileno())
    if (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns):
        return f'"{item.content_hash}"'
    return f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'


def check_inside(collection: Collection, item: Item) -> None:
    """Refuse an item whose file is a link out of the root; what its owner named by a path elsewhere may be shown."""
    path = collection.path_of(item)
    if path is not None and item.path is not None and not os.path.isabs(item.path):
        real = Path(os.path.realpath(path))
        if not _is_inside(real, collection) and real.exists():
            raise _outside(item)


def _outside(item: Item) -> Problem:
    detail = f"The file of item {item.id!r} lies outside the folder of the collection and is not handed out."
    return Problem(403, "outside-the-collection", detail)


def _gone(item: Item) -> Problem:
    fix = "a job of kind index brings the collection up to date"
    return Problem(404, "original-gone", f"The file of item {item.id!r} is gone or cannot be read; {fix}.")


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


_BLOCK = 1 << 18
_RANGE = re.compile(r"bytes=\s*(?:(?P<first>\d{1,18})-(?P<last>\d{1,18})?|-(?P<tail>\d{1,18}))\s*")


def file_response(request: Request, file: BinaryIO, media_type: str, headers: dict[str, str]) -> Response:
    """Return an answer with the content of ``file``, which it closes; ``headers`` hold the ETag.

    One range of bytes is answered with 206; several, and what is no range, get the whole file, as RFC 9110 allows.
    """
    etag = headers["ETag"]
    if has_current_version(request, etag):
        file.close()
        return Response(status_code=304, headers=headers)
    size = os.fstat(file.fileno()).st_size
    headers = {**headers, "Accept-Ranges": "bytes"}
    asked = _requested_range(request, etag)
    first, last, status = 0, size - 1, 200
    if asked is not None:
        first, last = _bounds(asked, size)
        status = 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        if first > last:
            file.close()
            detail = f"The range lies outside the {size:,} bytes of the file; ask for one inside."
            raise Problem(416, "no-such-range", detail, headers={"Content-Range": f"bytes */{size}"})
    headers["Content-Length"] = str(last - first + 1)
    if request.method == "HEAD":
        file.close()
        return Response(status_code=status, media_type=media_type, headers=headers)
    return StreamingResponse(_blocks(file, first, last), status_code=status, media_type=media_type, headers=headers)


def has_current_version(request: Request, etag: str) -> bool:
    """Say whether the client has this version already, by the header If-None-Match, which compares weakly."""
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    return bool(known & {etag.removeprefix("W/"), "*"})


def _requested_range(request: Request, etag: str) -> re.Match[str] | None:
    # Ranges are defined for GET alone.
    if request.method != "GET" or request.headers.get("if-range", etag) != etag:
        return None
    return _RANGE.fullmatch(request.headers.get("range", ""))


def _bounds(asked: re.Match[str], size: int) -> tuple[int, int]:
    if asked["tail"] is not None:
        tail = int(asked["tail"])
        return (max(0, size - tail), size - 1) if tail else (size, size - 1)
    last = size - 1 if asked["last"] is None else int(asked["last"])
    first = int(asked["first"])
    return (first, min(last, size - 1)) if first <= last else (size, size - 1)


def _blocks(file: BinaryIO, first: int, last: int) -> Iterator[bytes]:
    with file:
        file.seek(first)
        left = last - first + 1
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            left -= len(block)
            yield block
