"""From a decoded picture of any colour mode to upright RGB, in strips so that memory stays bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

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


def upright_rgb(image: Image.Image, reduction: tuple[int, int] = (1, 1)) -> NDArray[np.uint8]:
    """Return a decoded picture as (height, width, 3) bytes, turned upright, transparency on white.

    ``reduction`` averages that many columns and rows into one.
    """
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
