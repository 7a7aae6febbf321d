"""From any picture a user may have to eight-bit RGB."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from diptych.errors import InvalidInputError

Picture = str | os.PathLike[str] | NDArray[np.uint8] | Image.Image

_UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)


def read_picture(picture: Picture, size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """Return a picture as (height, width, 3) RGB bytes, upright, transparency on white.

    Accepts a path, an array of bytes (height, width[, 1, 3 or 4 channels]) or a Pillow image. Camera rotation is
    undone, palettes, greyscale, CMYK and sixteen-bit pictures become RGB. ``size`` is the (width, height) to scale to.

    >>> import numpy as np
    >>> from diptych.encoders.image import read_picture
    >>> read_picture(np.full((2, 4), 7, dtype=np.uint8), size=(3, 3)).shape
    (3, 3, 3)
    """
    name = _name(picture)
    try:
        with _open(picture, name) as image:
            if size is not None and image.format == "JPEG":
                # JPEG can be decoded at half, quarter or eighth size, which saves most of the time on large photos.
                image.draft(None, (2 * size[0], 2 * size[1]))
            upright = _to_rgb(ImageOps.exif_transpose(image))
            scaled = upright if size is None else upright.resize(size, Image.Resampling.BOX)
            return np.asarray(scaled, dtype=np.uint8)
    except InvalidInputError:
        raise
    except _UNREADABLE as error:
        raise InvalidInputError(f"{name} cannot be read as a picture: {error}; repair it or leave it out") from error


def _name(picture: Picture) -> str:
    return os.fspath(picture) if isinstance(picture, (str, os.PathLike)) else "a picture given as an array"


def _open(picture: Any, name: str) -> Image.Image:
    if isinstance(picture, (str, os.PathLike)):
        if Path(picture).is_dir():
            raise InvalidInputError(f"{name} is a folder; pass the paths of the picture files in it")
        if not Path(picture).is_file():
            raise InvalidInputError(f"{name} does not exist; pass the path of a picture file")
        return Image.open(picture)
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


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "F" or image.mode.startswith("I"):
        return _deep_grey_to_rgb(image)
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        opaque = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", opaque.size, "white"), opaque).convert("RGB")
    return image.convert("RGB")


def _deep_grey_to_rgb(image: Image.Image) -> Image.Image:
    # Pillow clips deep grey at 255 instead of scaling it, which would turn most such pictures white.
    values = np.asarray(image).astype(np.float64)
    if image.mode == "F":
        low, high = float(values.min()), float(values.max())
        scaled = (values - low) * (255 / (high - low)) if high > low else np.zeros_like(values)
    else:
        scaled = values / 257
    return Image.fromarray(np.clip(np.rint(scaled), 0, 255).astype(np.uint8)).convert("RGB")
