"""Reading a picture once for several uses: how far it is averaged down, and paths that bring their pixels along."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LONGEST_TO_SHORTEST = 16
_JPEG_SCALES = (8, 4, 2)


def reduction_for(size: tuple[int, int], shortest_side: int | None) -> tuple[int, int]:
    """Return how many columns and rows to average into one, so that no more detail is left than is needed."""
    if shortest_side is None:
        return 1, 1
    common = max(1, min(size) // shortest_side)
    longest = _LONGEST_TO_SHORTEST * shortest_side
    across, down = (common * max(1, -(-side // (common * longest))) for side in size)
    return across, down


def read_alike(size: tuple[int, int], first: int, second: int) -> bool:
    """Say whether a JPEG or PNG of this size gives the same pixels for two values of ``shortest_side``.

    >>> read_alike((500, 375), 260, 258), read_alike((518, 518), 260, 258)
    (True, False)
    """
    return _steps(size, first) == _steps(size, second) and reduction_for(size, first) == reduction_for(size, second)


def _steps(size: tuple[int, int], side: int) -> tuple[int, tuple[int, int]]:
    """Return what the decoder of JPEG leaves out, as Pillow asks it to, and what is averaged after it."""
    scale = next((scale for scale in _JPEG_SCALES if min(size) // side >= scale), 1)
    width, height = (-(-length // scale) for length in size)
    return scale, reduction_for((width, height), side)


class HashedFile(type(Path())):  # type: ignore[misc]
    """The path of a file that was read and hashed before, so that whoever encodes it need not do so again.

    It is a path like any other. Paths made from it know nothing, and it goes to other processes as a plain one.
    """

    digest: bytes | None = None
    """The SHA-256 of the content."""

    status: os.stat_result | None = None
    """What the file was like before it was hashed."""

    reading: PictureReading | None = None
    """The pixels, where they are at hand."""

    def __reduce__(self) -> tuple[type[Path], tuple[str]]:
        return Path, (os.fspath(self),)


@dataclass(frozen=True)
class PictureReading:
    """Pixels of a JPEG or PNG of ``size``, read for ``shortest_side``."""

    pixels: NDArray[np.uint8]
    shortest_side: int
    size: tuple[int, int]


def held_pixels(picture: Any, shortest_side: int | None) -> NDArray[np.uint8] | None:
    """Return the pixels that come with a picture, where reading it would give the same."""
    reading = picture.reading if isinstance(picture, HashedFile) else None
    if reading is None or shortest_side is None:
        return None
    return reading.pixels if read_alike(reading.size, reading.shortest_side, shortest_side) else None
