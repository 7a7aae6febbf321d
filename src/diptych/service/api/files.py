"""Sending the picture file of an item: opened safely, whole or in part."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from diptych.collection import Collection, Item
from diptych.collection.root import OriginalError
from diptych.errors import UntrustedRootError
from diptych.service.problems import Problem

_UNTRUSTED = (
    "The collection was made elsewhere, so its files are not opened; its owner names the folder of its pictures with "
    "`diptych serve --root FOLDER`."
)


def open_original(collection: Collection, item: Item) -> tuple[BinaryIO, str]:
    """Open the picture of an item, and return it with its ETag; what may not be sent is 404 with the reason."""
    try:
        file = collection.open_original(item)
    except UntrustedRootError:
        raise Problem(404, "untrusted-root", _UNTRUSTED) from None
    except OriginalError as reason:
        raise Problem(404, reason.kind, f"The file of item {item.id!r} {reason}.") from None
    return file, f'"{item.content_hash}"'


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
    size = file.seek(0, os.SEEK_END)
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
    """Return True if the client has this version already, by the header If-None-Match, which compares weakly."""
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
