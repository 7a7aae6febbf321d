"""Deciding whether what was sent is a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Self

from PIL import Image

from diptych.encoders.image import read_picture, thumbnail
from diptych.encoders.image.picture_files import open_image
from diptych.errors import InvalidInputError
from diptych.service.limits import Limits
from diptych.service.problem import Problem

_PREVIEW_SIDE = 512
_ORIENTATION_TAG = 0x0112
_ON_ITS_SIDE = (5, 6, 7, 8)
_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "WEBP": ".webp", "AVIF": ".avif", "TIFF": ".tif"}
_SUFFIXES |= {"BMP": ".bmp", "PPM": ".ppm", "MPO": ".jpg"}


@dataclass(frozen=True)
class SentPicture:
    """A picture that could be read: its size as it is seen, the ending its file should have, and a small JPEG of it."""

    width: int
    height: int
    suffix: str
    preview: bytes

    @classmethod
    def read(cls, file: BinaryIO, limits: Limits) -> Self:
        """Decode what was sent, or say what is wrong with it; sizes are looked at before anything is decoded."""
        size = file.seek(0, 2)
        if size > limits.upload_bytes:
            raise too_many_bytes(size, limits)
        width, height, suffix = _opened(file, limits)
        file.seek(0)
        try:
            pixels = read_picture(file, shortest_side=_PREVIEW_SIDE, max_pixels=limits.upload_pixels)
        except InvalidInputError as reason:
            raise Problem(422, "unreadable-picture", f"The picture cannot be decoded: {_plain(reason)}.") from None
        finally:
            file.seek(0)
        return cls(width, height, suffix, thumbnail(pixels, longest_side=_PREVIEW_SIDE))


def too_many_bytes(size: int, limits: Limits) -> Problem:
    """Return the answer to a file that is too large."""
    return Problem(
        413, "picture-too-large", f"The picture has {size:,} bytes; send at most {limits.upload_bytes:,} bytes."
    )


def _opened(file: BinaryIO, limits: Limits) -> tuple[int, int, str]:
    # Decoders meet damaged files with any kind of exception, so all of them mean the same here.
    try:
        image = open_image(file)
    except Exception as reason:
        detail = f"What was sent is no picture that can be read: {_plain(reason)}."
        raise Problem(415, "not-a-picture", detail) from None
    width, height = image.size
    if width * height > limits.upload_pixels:
        detail = f"The picture has {width:,} × {height:,} pixels; scale it to at most {limits.upload_pixels:,} in all."
        raise Problem(413, "picture-too-large", detail)
    if _is_on_its_side(image):
        width, height = height, width
    return width, height, _SUFFIXES.get(image.format or "", ".jpg")


def _is_on_its_side(image: Image.Image) -> bool:
    # Notes of a camera that cannot be understood are no reason to refuse its picture.
    try:
        return image.getexif().get(_ORIENTATION_TAG, 1) in _ON_ITS_SIDE
    except Exception:
        return False


def _plain(reason: Exception) -> str:
    return (str(reason) or type(reason).__name__).removesuffix(".")[:300]
