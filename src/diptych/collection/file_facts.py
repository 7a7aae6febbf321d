"""What a collection keeps of a picture file."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path

from diptych.collection.record import is_storable
from diptych.errors import InvalidInputError

_THUMBNAIL = (160, 160)
_BLOCK = 1 << 20


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
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


def file_facts(path: Path) -> FileFacts:
    """Read a picture file: hash, size and thumbnail.

    A file that shows no picture still has a hash; whether it can be used is for the encoder to say.
    """
    digest = content_hash(path)
    # Pillow fails on damaged files in every way a decoder can, and each of them means: no thumbnail.
    try:
        return FileFacts(digest, *_preview(path))
    except Exception:
        return FileFacts(digest)


def _preview(path: Path) -> tuple[int, int, bytes]:
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        # A picture large enough for this warning is refused: its thumbnail is not worth the memory.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path) as image:
            width, height = image.size
            if image.getexif().get(0x0112, 1) in (5, 6, 7, 8):
                width, height = height, width
            image.draft("RGB", _THUMBNAIL)
            small = ImageOps.exif_transpose(image)
            small.thumbnail(_THUMBNAIL)
            stream = io.BytesIO()
            small.convert("RGB").save(stream, "JPEG", quality=80)
    return width, height, stream.getvalue()
