"""The same on every machine: random choices, and drawing with NumPy (colours, shapes, the pen and the canvas)."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")


class PortableRandom:
    """A stream of random choices, named by what it is for.

    Only ``random.Random.random()`` is used, the one method whose sequence Python promises to keep; weights are
    integers, so no rounding of sums can change a choice.
    """

    def __init__(self, *name: str | int) -> None:
        digest = hashlib.sha256("/".join(str(part) for part in name).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big")).random

    def uniform(self, low: float, high: float) -> float:
        """Return a number between ``low`` and ``high``."""
        return low + (high - low) * self._random()

    def integer(self, bound: int) -> int:
        """Return one of 0, …, ``bound`` − 1."""
        return int(self._random() * bound)

    def bernoulli(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random() < probability

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely."""
        return items[self.integer(len(items))]

    def weighted(self, weights: Mapping[Item, int]) -> Item:
        """Return a key with probability proportional to its integer weight."""
        left = self.integer(sum(weights.values()))
        for item, weight in weights.items():
            if left < weight:
                return item
            left -= weight
        raise AssertionError("weights must be positive somewhere")

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order."""
        pool = list(items)
        return [pool.pop(self.integer(len(pool))) for _ in items]


RGB = tuple[float, float, float]

COLOURS: dict[str, RGB] = {
    "red": (214, 48, 49),
    "orange": (240, 132, 36),
    "yellow": (248, 208, 58),
    "green": (76, 165, 80),
    "turquoise": (56, 190, 184),
    "blue": (52, 108, 205),
    "purple": (134, 76, 176),
    "pink": (244, 132, 176),
    "brown": (140, 90, 56),
    "white": (246, 244, 238),
}

WHITE: RGB = (255, 255, 255)
INK: RGB = (46, 38, 50)
Field = NDArray[np.floating[Any]]
Paint = RGB | Field


def mix(first: RGB, second: RGB, share: float) -> RGB:
    """Return the colour ``share`` of the way from the first to the second."""
    red, green, blue = (start + (end - start) * share for start, end in zip(first, second, strict=True))
    return red, green, blue


def outline(colour: RGB) -> RGB:
    """Return the dark line colour that goes with a body colour."""
    return mix((colour[0] * 0.42, colour[1] * 0.42, colour[2] * 0.42), INK, 0.35)


def circle(u: Field, v: Field, x: float, y: float, radius: float) -> Field:
    """Return the distance to a disc."""
    du, dv = u - x, v - y
    return np.asarray(np.sqrt(du * du + dv * dv) - radius)


def ellipse(u: Field, v: Field, x: float, y: float, width: float, height: float) -> Field:
    """Return a first-order distance to an ellipse with half axes ``width`` and ``height``."""
    du, dv = (u - x) / width, (v - y) / height
    # The floor keeps the centre inside, where both the distance's numerator and its slope would vanish.
    square = np.maximum(du * du, 1e-12) + dv * dv
    su, sv = du / width, dv / height
    steepness = np.sqrt(np.maximum(su * su, 1e-12) + sv * sv)
    return np.asarray((square - np.sqrt(square)) / steepness)


def box(u: Field, v: Field, x: float, y: float, width: float, height: float) -> Field:
    """Return the distance to a rectangle with half sides ``width`` and ``height``."""
    return np.asarray(np.maximum(np.abs(u - x) - width, np.abs(v - y) - height))


def line(u: Field, v: Field, start: tuple[float, float], end: tuple[float, float], radius: float) -> Field:
    """Return the distance to a straight stroke with round ends, ``radius`` being half its thickness."""
    (x, y), along, down = start, end[0] - start[0], end[1] - start[1]
    du, dv = u - x, v - y
    square = along * along + down * down
    share = np.minimum(np.maximum(du * (along / square) + dv * (down / square), 0), 1)
    du, dv = du - share * along, dv - share * down
    return np.asarray(np.sqrt(du * du + dv * dv) - radius)


def polygon(u: Field, v: Field, corners: Sequence[tuple[float, float]]) -> Field:
    """Return the distance to a convex polygon, corners given clockwise as seen on the screen (y down)."""
    edges = []
    for (x, y), (next_x, next_y) in zip(corners, [*corners[1:], corners[0]], strict=True):
        length = math.sqrt((next_x - x) * (next_x - x) + (next_y - y) * (next_y - y))
        normal_u, normal_v = (next_y - y) / length, (x - next_x) / length
        edges.append(u * normal_u + (v * normal_v - (x * normal_u + y * normal_v)))
    return np.asarray(reduce(np.maximum, edges))


def curve(x: Field, knots: Sequence[float]) -> Field:
    """Return a smooth curve over x ∈ [0, 1] through evenly spaced heights."""
    heights = np.array(knots, dtype=np.float32)
    spans = len(knots) - 1
    position = np.minimum(np.maximum(x, 0), 1) * spans
    first = np.minimum(np.floor(position), spans - 1)
    index = first.astype(np.int64)
    share = position - first
    return np.asarray(heights[index] + (heights[index + 1] - heights[index]) * (share * share * (3 - 2 * share)))


def coverage(distance: Field, pixels: float) -> Field:
    """Return how much of each pixel lies inside, by a linear ramp one pixel wide across the edge."""
    return np.asarray(np.minimum(np.maximum(0.5 - distance * pixels, 0), 1))


def planes_of(paint: Paint) -> Field:
    """Return a colour in the shape that spreads over a window; paint in that shape as it is."""
    return np.array(paint, dtype=np.float32).reshape(3, 1, 1) if isinstance(paint, tuple) else paint


@dataclass(frozen=True)
class Pen:
    """Paints shapes onto a window of the canvas; ``u`` and ``v`` are its coordinates, ``pixels`` the pixels in one."""

    planes: Field
    u: Field
    v: Field
    pixels: float

    def fill(self, distance: Field, paint: Paint, opacity: float = 1.0) -> None:
        """Paint the inside of a shape."""
        self.blend(coverage(distance, self.pixels) * opacity, paint)

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
        return np.asarray(planes_of(paint) * (1 - strength * (self.u * 0.3 + self.v * 0.7)))

    def blend(self, share: Field, paint: Paint) -> None:
        """Move every pixel of the window towards the paint by its share."""
        self.planes[...] += (planes_of(paint) - self.planes) * share

    def gradient(self, top: float, first: RGB, bottom: float, second: RGB) -> Field:
        """Return colours that run smoothly from the first at one height to the second at another."""
        share = np.minimum(np.maximum((self.v - top) / (bottom - top), 0), 1)
        return np.asarray(planes_of(first) + (planes_of(second) - planes_of(first)) * (share * share * (3 - 2 * share)))


class Canvas:
    """A square picture in float32, colour planes first, painted through pens and read as ``uint8`` at the end."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.planes = np.zeros((3, size, size), dtype=np.float32)
        self._centres = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)

    def strip(self, top: float, bottom: float) -> Pen:
        """Return a pen whose coordinates run from 0 to 1 over the picture, y down, for the rows between two heights."""
        rows = self._span(top, bottom)
        return Pen(self.planes[:, rows], self._centres[None, :], self._centres[rows, None], self.size)

    def window(self, x: float, y: float, scale: float, *, reach: float = 1.1) -> Pen:
        """Return a pen for something centred at (x, y) that spans −1 … 1 in its own coordinates.

        ``scale`` is half its extent as a fraction of the picture, ``reach`` how far it goes in its own coordinates.
        """
        columns = self._span(x - scale * reach, x + scale * reach)
        rows = self._span(y - scale * reach, y + scale * reach)
        across = (self._centres[None, columns] - x) / scale
        down = (self._centres[rows, None] - y) / scale
        return Pen(self.planes[:, rows, columns], across, down, self.size * scale)

    def picture(self) -> NDArray[np.uint8]:
        """Return the picture as (size, size, 3) bytes, rounded to nearest."""
        levels = np.floor(np.minimum(np.maximum(self.planes, 0), 255) + np.float32(0.5))
        return np.ascontiguousarray(levels.astype(np.uint8).transpose(1, 2, 0))

    def _span(self, low: float, high: float) -> slice:
        start = min(max(math.floor(low * self.size) - 1, 0), self.size)
        return slice(start, min(max(math.ceil(high * self.size) + 1, start), self.size))
