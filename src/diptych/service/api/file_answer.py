"""Sending an open file, whole or in part."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from diptych.service.problem import Problem

_BLOCK = 1 << 18
_RANGE = re.compile(r"bytes=\s*(?:(?P<first>\d{1,18})-(?P<last>\d{1,18})?|-(?P<tail>\d{1,18}))\s*")


def file_answer(request: Request, file: BinaryIO, media_type: str, headers: dict[str, str]) -> Response:
    """Return an answer with the content of ``file``, which it closes; ``headers`` hold the ETag.

    One range of bytes is answered with 206. Several at once, and what is no range at all, get the whole file, which
    RFC 9110 allows. ``If-None-Match`` is answered with 304, and ``If-Range`` with another ETag makes the range void.
    """
    etag = headers["ETag"]
    if is_known(request, etag):
        file.close()
        return Response(status_code=304, headers=headers)
    size = os.fstat(file.fileno()).st_size
    headers = {**headers, "Accept-Ranges": "bytes"}
    asked = _asked_range(request, etag)
    if asked is None:
        first, last, status = 0, size - 1, 200
    else:
        first, last = _bounds(asked, size)
        status = 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    if status == 206 and not first <= last:
        file.close()
        detail = f"The range lies outside the {size:,} bytes of the file; ask for one inside."
        raise Problem(416, "no-such-range", detail, headers={"Content-Range": f"bytes */{size}"})
    headers["Content-Length"] = str(last - first + 1)
    if request.method == "HEAD":
        file.close()
        return Response(status_code=status, media_type=media_type, headers=headers)
    return StreamingResponse(_blocks(file, first, last), status_code=status, media_type=media_type, headers=headers)


def is_known(request: Request, etag: str) -> bool:
    """Say whether the client has this version already."""
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return etag in known or "*" in known


def _asked_range(request: Request, etag: str) -> re.Match[str] | None:
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
