"""From any picture a user may have to eight-bit upright RGB, and to a thumbnail."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, BinaryIO, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.data.picture_files import split_moment
from diptych.encoders.image.decoding_process import Answer, decode_elsewhere, is_available
from diptych.encoders.image.picture_formats import (
    check_format,
    open_image,
    open_regular_file,
    picture_format,
    shown_name,
)
from diptych.encoders.image.plain_pictures import is_plain, takes_little_memory
from diptych.encoders.image.reading_once import reduction_for
from diptych.errors import InvalidInputError

_STRIP_PIXELS = 4_000_000
_ORIENTATION_TAG = 0x0112

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
Result = TypeVar("Result")
Finish = Callable[[Image.Image, tuple[int, int]], Result]
"""Makes something of a decoded picture, given how many columns and rows may be averaged into one."""
Picture = str | os.PathLike[str] | bytes | BinaryIO | NDArray[np.uint8] | Image.Image
MAX_PIXELS = 200_000_000
"""Pictures with more pixels than this are refused; the largest cameras in phones stay just below."""
_LONGEST_SIDE = 1_000_000
# Their values are numbers of colours, or need two steps to be averaged.
_NOT_AVERAGED = ("1", "P", "PA", "La")
# Averages of whole pixels are as small as this many times the thumbnail.
_REDUCING_GAP = 1.5
_LARGE_PICTURE = 4_000_000
# Of pictures that were sent: those of most telephones, which take some hundredths of a second.
_MOST_PIXELS_HERE = 16_000_000
_few_large_pictures_at_once = threading.BoundedSemaphore(3)
# A drawing of a few lines can take for ever, and an honest one is drawn at once.
_MOST_SECONDS_OF_A_DRAWING = 5.0
MOST_SECONDS = 20.0
"""Processor time that a picture may take where it is not decoded here."""


def upright_rgb(image: Image.Image, reduction: tuple[int, int] = (1, 1)) -> NDArray[np.uint8]:
    """Return a picture as upright RGB bytes, transparency on white; ``reduction`` averages so many columns and rows."""
    turn = _UPRIGHT.get(_orientation(image))
    whole = _reduced_rgb(image, reduction)
    return np.asarray(whole if turn is None else whole.transpose(turn), dtype=np.uint8)


def _orientation(image: Image.Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:
        # Notes of a camera that cannot be understood are no reason to refuse its picture.
        return 1
    return found if isinstance(found, int) else 1


def _reduced_rgb(image: Image.Image, reduction: tuple[int, int]) -> Image.Image:
    width, height = image.size
    value_range = _value_range(image)
    # A strip must hold whole groups of rows, so that strips reduce to what the whole would.
    rows = max(1, _STRIP_PIXELS // (width * reduction[1])) * reduction[1]
    if rows >= height:
        return _reduced(_to_rgb(image, value_range), reduction)
    result = Image.new("RGB", (-(-width // reduction[0]), -(-height // reduction[1])))
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        result.paste(_reduced(_to_rgb(strip, value_range), reduction), (0, top // reduction[1]))
    return result


def _reduced(image: Image.Image, reduction: tuple[int, int]) -> Image.Image:
    return image if reduction == (1, 1) else image.reduce(reduction)


def _to_rgb(image: Image.Image, value_range: tuple[float, float]) -> Image.Image:
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if _is_deep(image):
        return _deep_grey_to_rgb(image, value_range)
    if image.mode == "La":
        # Pillow knows the way back from premultiplied grey in two steps only.
        image = image.convert("LA")
    if image.mode in ("RGBA", "LA", "PA", "RGBa") or "transparency" in image.info:
        opaque = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", opaque.size, "white"), opaque).convert("RGB")
    return image.convert("RGB")


def _is_deep(image: Image.Image) -> bool:
    return image.mode == "F" or image.mode.startswith("I")


def _value_range(image: Image.Image) -> tuple[float, float]:
    """Return the values that become black and white: all sixteen bits, or from least to most where these differ."""
    if not _is_deep(image):
        return 0.0, 255.0
    low, high = np.inf, -np.inf
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        values = np.asarray(image.crop((0, top, image.width, min(image.height, top + rows))))
        finite = values[np.isfinite(values)] if image.mode == "F" else values
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    if image.mode != "F" and 0 <= low <= high <= 65535:
        return 0.0, 65535.0
    return low, high


def _deep_grey_to_rgb(image: Image.Image, value_range: tuple[float, float]) -> Image.Image:
    # Pillow clips deep grey at 255 instead of scaling it, which would turn most such pictures white.
    low, high = value_range
    values = np.asarray(image).astype(np.float64)
    if not high > low:
        return Image.new("RGB", image.size)
    shades = np.nan_to_num(np.clip((values - low) * (255 / (high - low)), 0, 255), nan=0.0)
    return Image.fromarray(np.rint(shades).astype(np.uint8)).convert("RGB")


def read_picture(
    picture: Picture,
    size: tuple[int, int] | None = None,
    *,
    shortest_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
    seconds: float | None = None,
) -> NDArray[np.uint8]:
    """Return a picture as (height, width, 3) RGB bytes, upright, transparency on white.

    Accepts a path, the bytes of a picture file, a binary file, an array of bytes (height, width[, 1, 3 or 4 channels])
    or a Pillow image. Camera rotation is undone; palettes, greyscale, CMYK and sixteen-bit pictures become RGB; of an
    animation the first frame is taken, of a video the first that shows something, or the one at the seconds that a path
    like ``clip.mp4#t=12.5`` names. Whatever cannot be read raises :class:`InvalidInputError` with its name and
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
    seconds:
        The time in a video that is given as a file; a path says it itself.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import read_picture
    >>> read_picture(np.full((2, 4), 7, dtype=np.uint8), size=(3, 3)).shape
    (3, 3, 3)
    >>> read_picture(np.zeros((1000, 1600, 3), dtype=np.uint8), shortest_side=200).shape
    (200, 320, 3)
    """
    if size is not None:
        pixels = read_picture(picture, shortest_side=2 * max(size), max_pixels=max_pixels, seconds=seconds)
        return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))
    return _read(picture, upright_rgb, shortest_side, max_pixels, seconds)


def read_sent_picture(file: BinaryIO, *, shortest_side: int, max_pixels: int) -> NDArray[np.uint8]:
    """Return a picture that somebody sent, as :func:`read_picture` does.

    What takes longer than most is decoded elsewhere, by a process of low priority, because others wait for this one.
    """
    options = {"shortest_side": shortest_side, "max_pixels": max_pixels, "seconds": None}
    return _read_file(file, "what was sent", upright_rgb, options, most_here=_MOST_PIXELS_HERE)


def read_image(
    picture: Picture,
    *,
    shortest_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
    seconds: float | None = None,
) -> Image.Image:
    """Return a picture upright, otherwise as it is stored: grey, palette, CMYK and transparency are left to the caller.

    Takes what :func:`read_picture` takes, and refuses what it refuses. Grey of sixteen bits and more becomes RGB, for
    Pillow's own conversion would turn most of it white.
    """
    return _read(picture, _upright_image, shortest_side, max_pixels, seconds)


def _upright_image(image: Image.Image, reduction: tuple[int, int]) -> Image.Image:
    turn = _UPRIGHT.get(_orientation(image))
    whole = _to_rgb(image, _value_range(image)) if _is_deep(image) else image
    if whole.mode not in _NOT_AVERAGED:
        whole = _reduced(whole, reduction)
    return whole if turn is None else whole.transpose(turn)


def _read(
    picture: Picture, finish: Finish[Result], shortest_side: int | None, max_pixels: int, seconds: float | None
) -> Result:
    options = {"shortest_side": shortest_side, "max_pixels": max_pixels, "seconds": seconds}
    if isinstance(picture, (str, os.PathLike)):
        options["seconds"] = split_moment(picture)[1]
        with open_regular_file(picture) as file:
            return _read_file(file, shown_name(os.fspath(picture)), finish, options)
    if isinstance(picture, bytes):
        return _read_file(io.BytesIO(picture), "a picture given as bytes", finish, options)
    if not isinstance(picture, (np.ndarray, Image.Image)) and hasattr(picture, "read"):
        return _read_file(picture, shown_name(str(getattr(picture, "name", "a file"))), finish, options)
    image, name = _pillow_image(picture), "a picture given as an array"
    _check_size(image, name, max_pixels)
    return _decoded(image, name, finish, shortest_side)


def _read_file(
    file: BinaryIO, name: str, finish: Finish[Result], options: dict[str, Any], most_here: int = MAX_PIXELS
) -> Result:
    is_bounded, shortest_side = is_available(), options["shortest_side"]
    if is_bounded and not is_plain(file):
        return _decoded_elsewhere(file, name, finish, options)
    try:
        image = open_image(file, options["seconds"], to_decode=not is_bounded)
    except Exception as error:
        raise _unreadable(name, error) from error
    with image:
        _check_size(image, name, options["max_pixels"])
        size = image.size
        if shortest_side is not None:
            # JPEG can be decoded at half, quarter or eighth size, which saves most of the time on large photos.
            image.draft(None, (shortest_side, shortest_side))
        if is_bounded and (size[0] * size[1] > most_here or not takes_little_memory(image, size)):
            return _decoded_elsewhere(file, name, finish, options)
        return _decoded(image, name, finish, shortest_side)


def _check_size(image: Image.Image, name: str, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise InvalidInputError(
            f"{name} has {width:,} × {height:,} pixels, more than the limit of {max_pixels:,}; scale it down"
        )
    if max(width, height) > _LONGEST_SIDE:
        raise InvalidInputError(
            f"{name} has {width:,} × {height:,} pixels, and no side may exceed {_LONGEST_SIDE:,}; cut it into pieces"
        )


def _decoded(image: Image.Image, name: str, finish: Finish[Result], shortest_side: int | None) -> Result:
    try:
        with _few_large_pictures_at_once if image.width * image.height > _LARGE_PICTURE else nullcontext():
            image.load()
            return finish(image, reduction_for(image.size, shortest_side))
    except Exception as error:
        raise _unreadable(name, error) from error


def _decoded_elsewhere(file: BinaryIO, name: str, finish: Finish[Result], options: dict[str, Any]) -> Result:
    task = "pixels" if finish is upright_rgb else "image"
    try:
        kind = picture_format(file)
        check_format(file, kind)
        most = min(MOST_SECONDS, _MOST_SECONDS_OF_A_DRAWING) if kind == "SVG" else MOST_SECONDS
        answer = decode_elsewhere(task, file, name, most, **options)
    except InvalidInputError:
        # It says all of this already.
        raise
    except ValueError as error:
        raise _unreadable(name, error) from error
    if task == "pixels":
        return cast(Result, np.frombuffer(answer[1], dtype=np.uint8).reshape(answer[0]["shape"]))
    return cast(Result, _unpacked_image(answer))


def packed_image(image: Image.Image) -> Answer:
    """Return an image as it travels between processes: a document and bytes."""
    palette, transparency = image.palette, image.info.get("transparency")
    about: dict[str, Any] = {"mode": image.mode, "size": image.size}
    if palette is not None:
        about["palette"] = [palette.mode, image.getpalette(palette.mode)]
    if transparency is not None:
        about["transparency"] = list(transparency) if isinstance(transparency, (bytes, tuple)) else transparency
    return about, image.tobytes()


def _unpacked_image(answer: Answer) -> Image.Image:
    about, content = answer
    image = Image.frombytes(about["mode"], tuple(about["size"]), content)
    if "palette" in about:
        mode, colours = about["palette"]
        image.putpalette(colours, mode)
    if isinstance(clear := about.get("transparency"), list):
        image.info["transparency"] = bytes(clear) if image.mode == "P" else tuple(clear)
    elif clear is not None:
        image.info["transparency"] = clear
    return image


def _unreadable(name: str, error: Exception) -> InvalidInputError:
    # Decoders meet damaged files with any kind of exception, so all of them mean the same here.
    reason = " ".join(str(error).split()) or type(error).__name__
    return InvalidInputError(f"{name} cannot be read as a picture: {reason}; repair it or leave it out")


def _pillow_image(picture: Any) -> Image.Image:
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


def thumbnail(
    pixels: NDArray[np.uint8],
    *,
    longest_side: int = 256,
    format: Literal["JPEG", "WEBP", "PNG"] = "JPEG",
    quality: int = 80,
) -> bytes:
    """Return RGB pixels as the bytes of a small picture file; a picture that is small already keeps its size.

    >>> import numpy as np
    >>> from diptych.encoders import read_picture, thumbnail
    >>> small = thumbnail(np.zeros((300, 600, 3), dtype=np.uint8))
    >>> small[:2], read_picture(small).shape
    (b'\\xff\\xd8', (128, 256, 3))
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise InvalidInputError(
            f"a thumbnail is made from uint8 pixels (height, width, 3), got {pixels.dtype} of shape {pixels.shape}; "
            f"read_picture gives such"
        )
    if longest_side < 1:
        raise InvalidInputError(f"longest_side must be at least 1, got {longest_side}")
    image = Image.fromarray(pixels)
    # Whole pixels are averaged first, which is quicker and cannot be seen.
    image.thumbnail((longest_side, longest_side), Image.Resampling.BICUBIC, reducing_gap=_REDUCING_GAP)
    content = io.BytesIO()
    image.save(content, format=format, quality=quality)
    return content.getvalue()
