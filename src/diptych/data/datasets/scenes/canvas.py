"""The picture while it is painted, and windows onto it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from diptych.data.datasets.scenes.pen import Pen


class Canvas:
    """A square picture in float32, painted through pens and read as ``uint8`` at the end.

    Colour planes come first in memory, since every stroke is one operation on a plane-by-plane window.

    >>> from diptych.data.datasets.scenes.canvas import Canvas
    >>> canvas = Canvas(32)
    >>> canvas.picture().shape
    (32, 32, 3)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.planes = np.zeros((3, size, size), dtype=np.float32)
        self._centres = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)

    def whole(self) -> Pen:
        """Return a pen whose coordinates run from 0 to 1 over the whole picture, y down."""
        return Pen(self.planes, self._centres[None, :], self._centres[:, None], self.size)

    def strip(self, top: float, bottom: float) -> Pen:
        """Return a pen like :meth:`whole` that touches only the rows between two heights."""
        rows = self._span(top, bottom)
        return Pen(self.planes[:, rows], self._centres[None, :], self._centres[rows, None], self.size)

    def window(
        self,
        x: float,
        y: float,
        scale: float,
        *,
        reach: float = 1.1,
        reach_down: float | None = None,
        direction: tuple[float, float] = (1.0, 0.0),
        flipped: bool = False,
    ) -> Pen:
        """Return a pen for something centred at (x, y) that spans −1 … 1 in its own coordinates.

        ``scale`` is half its extent as a fraction of the picture, ``reach`` how far it goes in its own
        coordinates (``reach_down`` up and down, where that differs), ``direction`` the cosine and sine of its tilt;
        ``flipped`` mirrors it.
        """
        columns = self._span(x - scale * reach, x + scale * reach)
        height = scale * (reach if reach_down is None else reach_down)
        rows = self._span(y - height, y + height)
        across = (self._centres[None, columns] - x) / scale
        down = (self._centres[rows, None] - y) / scale
        cosine, sine = direction
        if sine != 0.0:
            across, down = across * cosine + down * sine, down * cosine - across * sine
        return Pen(self.planes[:, rows, columns], -across if flipped else across, down, self.size * scale)

    def picture(self) -> NDArray[np.uint8]:
        """Return the picture as (size, size, 3) bytes, rounded to nearest."""
        levels = np.floor(np.minimum(np.maximum(self.planes, 0), 255) + np.float32(0.5))
        return np.ascontiguousarray(levels.astype(np.uint8).transpose(1, 2, 0))

    def _span(self, low: float, high: float) -> slice:
        start = min(max(math.floor(low * self.size) - 1, 0), self.size)
        return slice(start, min(max(math.ceil(high * self.size) + 1, start), self.size))
