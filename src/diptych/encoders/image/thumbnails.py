"""Small copies of pictures, for lists of results."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.errors import InvalidInputError


def thumbnail(
    pixels: NDArray[np.uint8],
    *,
    longest_side: int = 256,
    format: Literal["JPEG", "WEBP"] = "JPEG",
    quality: int = 80,
) -> bytes:
    """Return RGB pixels as the bytes of a small picture file; a picture that is small already keeps its size.

    >>> import numpy as np
    >>> from diptych.encoders.image import read_picture, thumbnail
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
    image.thumbnail((longest_side, longest_side), Image.Resampling.BICUBIC)
    content = io.BytesIO()
    image.save(content, format=format, quality=quality)
    return content.getvalue()
