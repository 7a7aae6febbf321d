"""Reading a picture once for several uses: how far it is averaged down, and paths that bring along what was cut."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from diptych.data.remote_files import RemotePath, full_path

_LONGEST_TO_SHORTEST = 16
_JPEG_SCALES = (8, 4, 2)
_CROP_MARGIN = 32


def reduction_for(size: tuple[int, int], shortest_side: int | None) -> tuple[int, int]:
    """Return how many columns and rows to average into one, so that no more detail is left than is needed."""
    if shortest_side is None:
        return 1, 1
    common = max(1, min(size) // shortest_side)
    longest = _LONGEST_TO_SHORTEST * shortest_side
    across, down = (common * max(1, -(-side // (common * longest))) for side in size)
    return across, down


def read_alike(size: tuple[int, int], first: int, second: int) -> bool:
    """Return True if a JPEG or PNG of this size gives the same pixels for two values of ``shortest_side``.

    >>> read_alike((500, 375), 260, 258), read_alike((518, 518), 260, 258)
    (True, False)
    """
    return _steps(size, first) == _steps(size, second) and reduction_for(size, first) == reduction_for(size, second)


def _steps(size: tuple[int, int], side: int) -> tuple[int, tuple[int, int]]:
    """Return what the decoder of JPEG leaves out, as Pillow asks it to, and what is averaged after it."""
    scale = next((scale for scale in _JPEG_SCALES if min(size) // side >= scale), 1)
    width, height = (-(-length // scale) for length in size)
    return scale, reduction_for((width, height), side)


@dataclass(frozen=True)
class Square:
    """What a network looks at: the whole picture squeezed into a square of so many pixels a side, or its middle."""

    side: int
    crop: Literal["whole", "centre"] = "whole"

    @property
    def reading_side(self) -> int:
        """The shortest side below which a picture need not be read any larger."""
        return self.side + (_CROP_MARGIN if self.crop == "centre" else 0)

    def cut(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the square of a picture."""
        # Whoever only names squares need not wait for Pillow.
        from PIL import Image

        image = Image.fromarray(pixels)
        return np.asarray(image.resize((self.side, self.side), Image.Resampling.BICUBIC, box=self.box(image.size)))

    def box(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return what the network sees of a picture of this width and height: left, upper, right and lower edge."""
        width, height = size
        if self.crop == "whole":
            return 0, 0, width, height
        edge = min(size) * self.side / (self.side + _CROP_MARGIN)
        return ((width - edge) / 2, (height - edge) / 2, (width + edge) / 2, (height + edge) / 2)


Squares = Mapping[Square, NDArray[np.uint8]]


class HashedFile:
    """The path of a file that was read and hashed before, so that whoever encodes it need not do so again.

    It is a path like any other. Paths made from it know nothing, and it goes to other processes as a plain one.
    """

    digest: bytes | None = None
    """The SHA-256 of the content."""

    status: os.stat_result | None = None
    """What the file was like before it was hashed."""

    squares: Squares = MappingProxyType({})
    """What networks look at, where it is at hand."""

    def __reduce__(self) -> tuple[Any, ...]:
        return full_path, (str(self),)


class _HashedLocalFile(HashedFile, type(Path())):  # type: ignore[misc]
    pass


class _HashedRemoteFile(HashedFile, RemotePath):
    pass


def hashed_path(path: Path, digest: bytes | None, status: os.stat_result | None, squares: Squares) -> Path:
    """Return a path with all that is known of its file."""
    file: Any = _HashedRemoteFile(path) if isinstance(path, RemotePath) else _HashedLocalFile(path)
    file.digest, file.status, file.squares = digest, status, squares
    return cast(Path, file)


def held_square(picture: Any, square: Square) -> NDArray[np.uint8] | None:
    """Return the square that comes with a picture, if it does."""
    return picture.squares.get(square) if isinstance(picture, HashedFile) else None
