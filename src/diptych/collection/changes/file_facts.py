"""What is known of a file before it is encoded: status, hash, size, thumbnail, and what it says of itself."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from diptych.cluster import available_processors
from diptych.collection.storage.item import is_storable, metadata_fault
from diptych.data.picture_kinds import is_video, split_moment
from diptych.errors import InvalidInputError

_THUMBNAIL_SIDE = 160
_BLOCK = 1 << 20


@dataclass(frozen=True)
class FileRequest:
    """A file to read, with the XMP files beside it; where its content is known, for what it says of itself alone."""

    path: Path
    sidecars: tuple[Path, ...] = ()
    known_content: str | None = None


@dataclass(frozen=True)
class FileFacts:
    """The content hash of a file, and the size and thumbnail of its picture; 0 and empty when it shows none.

    Of a video they are those of its beginning, and ``moments`` has the further ones, each with its seconds. ``said`` is
    what the file says of itself, ``trouble`` what of that could not be read.
    """

    content_hash: str
    width: int = 0
    height: int = 0
    thumbnail: bytes = b""
    moments: tuple[tuple[float, FileFacts], ...] = ()
    said: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""


def file_status(path: Path) -> os.stat_result:
    """Return the status of a regular file that can be stored; anything else is an error with a reason."""
    if not is_storable(os.fspath(path)):
        raise InvalidInputError("its name is not valid Unicode; rename it")
    try:
        status = os.stat(split_moment(path)[0])
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"it cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError("it is no regular file")
    return status


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file; that of a moment of a video is made from it."""
    # Pillow comes with these, so they wait until a file is read.
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        return _hash_at(_digest(file), split_moment(path)[1])


def file_facts(request: FileRequest) -> FileFacts:
    """Read a file; without a picture in it, the hash alone: the encoder says whether it is of use."""
    from diptych.encoders.image.picture_facts import picture_facts
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(request.path) as file:
        digest = request.known_content or _digest(file)
        # Decoders fail on damaged files in every way they can, and each of them means: no thumbnail.
        try:
            found = picture_facts(file, request.path, request.sidecars)
            fault = metadata_fault(found.fields)
            said: dict[str, Any] = {"said": {} if fault else found.fields, "trouble": fault or found.trouble}
            if request.known_content is not None:
                return FileFacts(digest, **said)
            facts = FileFacts(digest, found.width, found.height, _thumbnail(file), **said)
            moments = _moments(file, request.path, facts) if is_video(request.path) else ()
            return replace(facts, moments=tuple(moments))
        except Exception:
            return FileFacts(digest)


ReadFile = tuple[os.stat_result, FileFacts] | InvalidInputError


def read_files(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read the facts of files, each with its status from before, or the reason why it cannot be read."""
    with ThreadPoolExecutor(min(8, available_processors())) as pool:
        return list(pool.map(_read_file, requests))


def _read_file(request: FileRequest) -> ReadFile:
    try:
        return file_status(request.path), file_facts(request)
    except InvalidInputError as reason:
        return reason


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    try:
        while block := file.read(_BLOCK):
            digest.update(block)
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


def _thumbnail(file: BinaryIO, seconds: float | None = None) -> bytes:
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail

    pixels = read_picture(file, shortest_side=_THUMBNAIL_SIDE, seconds=seconds)
    return thumbnail(pixels, longest_side=_THUMBNAIL_SIDE)


def _moments(file: BinaryIO, path: Path, video: FileFacts) -> Iterator[tuple[float, FileFacts]]:
    from diptych.encoders.image.picture_facts import video_moments

    for seconds in video_moments(file, path):
        content = _hash_at(video.content_hash, seconds)
        yield seconds, replace(video, content_hash=content, thumbnail=_thumbnail(file, seconds), trouble="")


def _hash_at(digest: str, seconds: float | None) -> str:
    return digest if seconds is None else hashlib.sha256(f"{digest}#t={seconds:.3f}".encode()).hexdigest()
