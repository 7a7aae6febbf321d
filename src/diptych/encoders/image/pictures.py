"""From any picture a user may have to eight-bit RGB."""

from __future__ import annotations

import io
import os
import threading
from contextlib import nullcontext
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from diptych.encoders.image.picture_files import open_image, open_regular_file, shown_name
from diptych.encoders.image.rgb import upright_rgb
from diptych.errors import InvalidInputError

Picture = str | os.PathLike[str] | bytes | BinaryIO | NDArray[np.uint8] | Image.Image

MAX_PIXELS = 200_000_000
"""Pictures with more pixels than this are refused; the largest cameras in phones stay just below."""

_LONGEST_SIDE = 1_000_000
_LONGEST_TO_SHORTEST = 16
_LARGE_PICTURE = 32_000_000
_one_large_picture_at_a_time = threading.Lock()


def read_picture(
    picture: Picture,
    size: tuple[int, int] | None = None,
    *,
    shortest_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> NDArray[np.uint8]:
    """Return a picture as (height, width, 3) RGB bytes, upright, transparency on white.

    Accepts a path, the bytes of a picture file, a binary file, an array of bytes (height, width[, 1, 3 or 4 channels])
    or a Pillow image. Camera rotation is undone; palettes, greyscale, CMYK and sixteen-bit pictures become RGB; of an
    animation the first frame is taken. Whatever cannot be read raises :class:`InvalidInputError` with its name and
    the reason.

    Parameters
    ----------
    picture:
        What to read. The format is recognised by the content (``PICTURE_FORMATS``), whatever the file is called.
    size:
        The (width, height) to scale to.
    shortest_side:
        No more detail is needed than this many pixels along the shortest side: larger pictures are averaged down by
        whole factors, JPEG already while it is decoded, and come out with a shortest side of at least this and less
        than twice as much. Sides beyond sixteen times the shortest side are averaged down further. Reading the result
        again with the same value changes nothing, so a file can be read once and used for several things.
    max_pixels:
        Pictures that say they are larger are refused before they are decoded.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders.image import read_picture
    >>> read_picture(np.full((2, 4), 7, dtype=np.uint8), size=(3, 3)).shape
    (3, 3, 3)
    >>> read_picture(np.zeros((1000, 1600, 3), dtype=np.uint8), shortest_side=200).shape
    (200, 320, 3)
    """
    if size is not None:
        pixels = read_picture(picture, shortest_side=2 * max(size), max_pixels=max_pixels)
        return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))
    if isinstance(picture, (str, os.PathLike)):
        with open_regular_file(picture) as file:
            return _read_file(file, shown_name(os.fspath(picture)), shortest_side, max_pixels)
    if isinstance(picture, bytes):
        return _read_file(io.BytesIO(picture), "a picture given as bytes", shortest_side, max_pixels)
    if not isinstance(picture, (np.ndarray, Image.Image)) and hasattr(picture, "read"):
        return _read_file(picture, shown_name(str(getattr(picture, "name", "a file"))), shortest_side, max_pixels)
    return _read_opened(_image_of(picture), "a picture given as an array", shortest_side, max_pixels)


def _read_file(file: BinaryIO, name: str, shortest_side: int | None, max_pixels: int) -> NDArray[np.uint8]:
    try:
        image = open_image(file)
    except Exception as error:
        raise _unreadable(name, error) from error
    with image:
        return _read_opened(image, name, shortest_side, max_pixels)


def _read_opened(image: Image.Image, name: str, shortest_side: int | None, max_pixels: int) -> NDArray[np.uint8]:
    width, height = image.size
    if width * height > max_pixels:
        raise InvalidInputError(
            f"{name} has {width:,} × {height:,} pixels, more than the limit of {max_pixels:,}; scale it down"
        )
    if max(width, height) > _LONGEST_SIDE:
        raise InvalidInputError(
            f"{name} has {width:,} × {height:,} pixels, and no side may exceed {_LONGEST_SIDE:,}; cut it into pieces"
        )
    try:
        with _one_large_picture_at_a_time if width * height > _LARGE_PICTURE else nullcontext():
            return _decoded(image, shortest_side)
    except Exception as error:
        raise _unreadable(name, error) from error


def _decoded(image: Image.Image, shortest_side: int | None) -> NDArray[np.uint8]:
    if shortest_side is not None and isinstance(image, ImageFile.ImageFile):
        # JPEG can be decoded at half, quarter or eighth size, which saves most of the time on large photos.
        image.draft(None, (shortest_side, shortest_side))
    image.load()
    return upright_rgb(image, _reduction(image.size, shortest_side))


def _unreadable(name: str, error: Exception) -> InvalidInputError:
    # Decoders meet damaged files with any kind of exception, so all of them mean the same here.
    reason = str(error) or type(error).__name__
    return InvalidInputError(f"{name} cannot be read as a picture: {reason}; repair it or leave it out")


def _reduction(size: tuple[int, int], shortest_side: int | None) -> tuple[int, int]:
    """Return how many columns and rows to average into one."""
    if shortest_side is None:
        return 1, 1
    common = max(1, min(size) // shortest_side)
    longest = _LONGEST_TO_SHORTEST * shortest_side
    across, down = (common * max(1, -(-side // (common * longest))) for side in size)
    return across, down


def _image_of(picture: Any) -> Image.Image:
    if isinstance(picture, Image.Image):
        return picture.copy()
    if not isinstance(picture, np.ndarray):
        raise InvalidInputError(
            f"a picture is a path, an array of bytes or a Pillow image, got {type(picture).__name__}"
        )
    if picture.dtype != np.uint8 or picture.ndim not in (2, 3) or 0 in picture.shape:
        raise InvalidInputError(
            f"a picture array must be uint8 of shape (height, width[, channels]), "
            f"got {picture.dtype} of shape {picture.shape}"
        )
    if picture.ndim == 3 and picture.shape[2] not in (1, 3, 4):
        raise InvalidInputError(f"a picture array has 1, 3 or 4 channels, got {picture.shape[2]}")
    return Image.fromarray(picture[:, :, 0] if picture.ndim == 3 and picture.shape[2] == 1 else picture)
