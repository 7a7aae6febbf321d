"""Painting on a part of the canvas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from diptych.data.datasets.scenes.palette import RGB, outline
from diptych.data.datasets.scenes.shapes import Field

Paint = RGB | Field


def coverage(distance: Field, pixels: float) -> Field:
    """Return how much of each pixel lies inside, by a linear ramp one pixel wide across the edge."""
    cover: Field = distance * -pixels
    np.add(cover, 0.5, out=cover)
    np.maximum(cover, 0, out=cover)
    np.minimum(cover, 1, out=cover)
    return cover


@lru_cache(maxsize=1024)
def colour_planes(colour: RGB) -> Field:
    """Return a colour in the shape that spreads over a window, read-only because it is shared."""
    planes = np.array(colour, dtype=np.float32).reshape(3, 1, 1)
    planes.flags.writeable = False
    return planes


def _planes(paint: Paint) -> Field:
    return colour_planes(paint) if isinstance(paint, tuple) else paint


@dataclass(frozen=True)
class Pen:
    """Paints shapes onto a window of the canvas.

    ``u`` and ``v`` are the coordinates of the window's pixels (right and down, broadcastable), ``pixels`` says how
    many pixels one unit of them is, so that edges are one pixel soft at every size of picture.
    """

    planes: Field
    u: Field
    v: Field
    pixels: float

    def fill(self, distance: Field, paint: Paint, opacity: float = 1.0) -> None:
        """Paint the inside of a shape."""
        cover = coverage(distance, self.pixels)
        self.blend(cover if opacity == 1.0 else cover * opacity, paint)

    def glow(self, distance: Field, paint: Paint, opacity: float, width: float) -> None:
        """Paint a shape that fades out over ``width``, for light, shadow and mist."""
        fade = coverage(distance - width / 2, 1 / width)
        self.blend(fade * fade * opacity, paint)

    def body(self, distance: Field, paint: Paint, line: RGB, thickness: float = 0.06) -> None:
        """Paint a shape with an outline just outside its edge."""
        self.fill(distance - thickness, line)
        self.fill(distance, paint)

    def solid(self, distance: Field, colour: RGB, thickness: float = 0.06) -> None:
        """Paint a shape in one shaded colour, outlined in a darker tone of it."""
        self.body(distance, self.shaded(colour), outline(colour), thickness)

    def shaded(self, paint: Paint, strength: float = 0.2) -> Field:
        """Return the paint lit from above and a little from the left."""
        light: Field = 1 - strength * (self.u * 0.3 + self.v * 0.7)
        return _planes(paint) * light

    def blend(self, share: Field, paint: Paint) -> None:
        """Move every pixel of the window towards the paint by its share."""
        change = _planes(paint) - self.planes
        np.multiply(change, share, out=change)
        np.add(self.planes, change, out=self.planes)

    def gradient(self, stops: Sequence[tuple[float, RGB]]) -> Field:
        """Return colours that run smoothly down the window through (height, colour) stops."""
        first = stops[0][1]
        colours = _planes(first) + np.zeros_like(self.v)
        for (top, _), (bottom, colour) in pairwise(stops):
            share = np.minimum(np.maximum((self.v - top) / (bottom - top), 0), 1)
            colours = colours + (_planes(colour) - colours) * (share * share * (3 - 2 * share))
        return colours
