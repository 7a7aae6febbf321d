"""What is known of a file before it is encoded: its status, the hash of its content, its size and a thumbnail."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from diptych.cluster import available_processors
from diptych.collection.storage.item import is_storable
from diptych.errors import InvalidInputError

_THUMBNAIL_SIDE = 160
_BLOCK = 1 << 20
_ORIENTATION = 0x0112
_ON_ITS_SIDE = (5, 6, 7, 8)


@dataclass(frozen=True)
class FileFacts:
    """The content hash of a file, and the size and thumbnail of its picture; 0 and empty when it shows none."""

    content_hash: str
    width: int = 0
    height: int = 0
    thumbnail: bytes = b""


def file_status(path: Path) -> os.stat_result:
    """Return the status of a regular file that can be stored; anything else is an error with a reason."""
    if not is_storable(os.fspath(path)):
        raise InvalidInputError("its name is not valid Unicode; rename it")
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"it cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError("it is no regular file")
    return status


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    # Pillow comes with these, so they wait until a file is read.
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        return _digest(file)


def file_facts(path: Path) -> FileFacts:
    """Read hash, size and thumbnail of a file; without a picture, the hash: the encoder says whether it is of use."""
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        digest = _digest(file)
        # Decoders fail on damaged files in every way they can, and each of them means: no thumbnail.
        try:
            return FileFacts(digest, *_preview(file))
        except Exception:
            return FileFacts(digest)


ReadFile = tuple[os.stat_result, FileFacts] | InvalidInputError


def read_files(paths: Sequence[Path]) -> list[ReadFile]:
    """Read the facts of files, each with its status from before, or the reason why it cannot be read."""
    with ThreadPoolExecutor(min(8, available_processors())) as pool:
        return list(pool.map(_read_file, paths))


def _read_file(path: Path) -> ReadFile:
    try:
        return file_status(path), file_facts(path)
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


def _preview(file: BinaryIO) -> tuple[int, int, bytes]:
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail
    from diptych.encoders.image.picture_formats import open_image

    image = open_image(file)
    width, height = image.size
    if image.getexif().get(_ORIENTATION, 1) in _ON_ITS_SIDE:
        width, height = height, width
    return width, height, thumbnail(read_picture(file, shortest_side=_THUMBNAIL_SIDE), longest_side=_THUMBNAIL_SIDE)
