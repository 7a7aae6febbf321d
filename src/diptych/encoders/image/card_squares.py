"""Squares cut by a graphics card: what Pillow does to resize a picture, as two matrix products before the network."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import FloatArray
from diptych.encoders.image.reading_once import Square
from diptych.encoders.networks.onnx_graph import ConvolutionGraph

# Pillow's cubic spline, and the bits to which it rounds what each pixel counts for.
_SPLINE, _REACH, _FRACTION_BITS = -0.5, 2.0, 22


class UncutGraph(ConvolutionGraph):
    """A network that takes pictures of any one size, and the two matrices that resize them to its square.

    On many cores the squares take longer than decoding, while a card makes them in no time. Rows are rounded to bytes
    before columns are made, as Pillow does it, so that all but a few bytes in ten thousand are the same; of high
    pictures, which Pillow 13 turns round, more of them differ by one.
    """

    def centred_pixels(self, side: int, centre: tuple[float, ...]) -> str:
        """Add the inputs, RGB bytes ``pixels``, ``across`` and ``down``, and take ``centre`` from the colours."""
        pixels = self.input("pixels", np.uint8, ("items", "height", "width", 3))
        across = self.input("across", np.float32, ("width", side))
        down = self.input("down", np.float32, (side, "height"))
        colours = self.node("Transpose", self.cast(pixels, np.float32), perm=[0, 3, 1, 2])
        rows = self._as_bytes(self.node("MatMul", colours, across))
        square = self._as_bytes(self.node("MatMul", down, rows))
        return self.node("Sub", square, self.constant(np.array(centre, dtype=np.float32)[:, None, None]))

    def _as_bytes(self, values: str) -> str:
        rounded = self.node("Floor", self.node("Add", values, self.constant(np.float32(0.5))))
        return self.node("Clip", rounded, self.constant(np.float32(0)), self.constant(np.float32(255)))


class HalfUncutGraph(UncutGraph):
    """The same with everything after the square in float16, which a graphics card reads and multiplies sooner."""

    number = np.float16
    kept_types: ClassVar[dict[str, str]] = {**UncutGraph.kept_types, "float16": "<f2"}

    def centred_pixels(self, side: int, centre: tuple[float, ...]) -> str:
        """Add the inputs, and take ``centre`` from the colours."""
        return self.cast(super().centred_pixels(side, centre), np.float16)

    def pooled_features(self, value: str, width: int) -> None:
        """Give out the mean over rows and columns as ``features``; sums need the precision."""
        super().pooled_features(self.cast(value, np.float32), width)


class StackedPictures(threading.local):
    """Pictures of one size as one array: those of the last call, which the next network is given again.

    They are put together once for all networks of a thread, and the room for it is used again. They go to the card with
    each network: other threads run on meanwhile, whereas laying them down there once would halt all of them.
    """

    def __init__(self) -> None:
        self._pictures: Sequence[NDArray[np.uint8]] = ()
        self._room = np.empty((0, 0, 0, 3), dtype=np.uint8)

    def of(self, pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Return pictures together; they stay the same until the next call with others."""
        if len(pictures) != len(self._pictures) or not all(map(operator.is_, pictures, self._pictures)):
            size = pictures[0].shape
            if len(self._room) < len(pictures) or self._room.shape[1:] != size:
                self._room = np.empty((len(pictures), *size), dtype=np.uint8)
            np.stack(pictures, out=self._room[: len(pictures)])
            self._pictures = pictures
        return self._room[: len(pictures)]


@lru_cache(maxsize=64)
def resizing(square: Square, height: int, width: int) -> tuple[FloatArray, FloatArray]:
    """Return ``across`` (width, side) and ``down`` (side, height) for pictures of a size.

    >>> across, down = resizing(Square(2), height=4, width=2)
    >>> (across == np.eye(2)).all(), down.sum(axis=1)
    (np.True_, array([1., 1.], dtype=float32))
    """
    if (height, width) == (square.side, square.side):
        return np.eye(square.side, dtype=np.float32), np.eye(square.side, dtype=np.float32)
    left, upper, right, lower = square.box((width, height))
    return _weights(width, left, right, square.side).T.copy(), _weights(height, upper, lower, square.side)


def _weights(length: int, start: float, end: float, side: int) -> FloatArray:
    """Return what each of the pixels of a line counts for in each of those that it is resized to."""
    # Pillow keeps edges with seven digits.
    first_edge = np.float32(start)
    step = float(np.float32(end) - first_edge) / side
    stretch = max(step, 1.0)
    centres = float(first_edge) + (np.arange(side) + 0.5) * step
    first = np.maximum((centres - _REACH * stretch + 0.5).astype(int), 0)
    last = np.minimum((centres + _REACH * stretch + 0.5).astype(int), length)
    places = np.arange(length)
    counted = (places >= first[:, None]) & (places < last[:, None])
    weights = np.where(counted, _spline((places - centres[:, None] + 0.5) / stretch), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    steps = 1 << _FRACTION_BITS
    return np.asarray(np.rint(weights * steps) / steps, dtype=np.float32)


def _spline(distances: FloatArray) -> FloatArray:
    far = np.abs(distances)
    near = ((_SPLINE + 2) * far - (_SPLINE + 3)) * far**2 + 1
    beyond = (((far - 5) * far + 8) * far - 4) * _SPLINE
    return np.asarray(np.where(far < 1, near, np.where(far < _REACH, beyond, 0.0)))
