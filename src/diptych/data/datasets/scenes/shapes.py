"""Signed distances to simple shapes: negative inside, positive outside, zero on the edge.

Only additions, products, quotients, square roots and comparisons appear here. IEEE 754 fixes the result of each to the
last bit, which is what makes pictures identical on every machine; sines, powers and matrix products would not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.floating[Any]]


def circle(u: Field, v: Field, x: float, y: float, radius: float) -> Field:
    """Return the distance to a disc.

    >>> import numpy as np
    >>> from diptych.data.datasets.scenes.shapes import circle
    >>> circle(np.float32([0, 3]), np.float32([0, 4]), 0, 0, 1)
    array([-1.,  4.], dtype=float32)
    """
    du, dv = u - x, v - y
    distance: Field = np.sqrt(du * du + dv * dv) - radius
    return distance


def ellipse(u: Field, v: Field, x: float, y: float, width: float, height: float) -> Field:
    """Return a first-order distance to an ellipse with half axes ``width`` and ``height``."""
    du, dv = (u - x) / width, (v - y) / height
    # The floor keeps the centre inside, where both the distance's numerator and its slope would vanish.
    square = np.maximum(du * du, 1e-12) + dv * dv
    su, sv = du / width, dv / height
    steepness = np.sqrt(np.maximum(su * su, 1e-12) + sv * sv)
    distance: Field = (square - np.sqrt(square)) / steepness
    return distance


def box(u: Field, v: Field, x: float, y: float, width: float, height: float) -> Field:
    """Return the distance to a rectangle with half sides ``width`` and ``height``; corners stay sharp."""
    distance: Field = np.maximum(np.abs(u - x) - width, np.abs(v - y) - height)
    return distance


def rounded_box(u: Field, v: Field, x: float, y: float, width: float, height: float, radius: float) -> Field:
    """Return the distance to a rectangle whose corners are quarter circles of the given radius."""
    du = np.abs(u - x) - (width - radius)
    dv = np.abs(v - y) - (height - radius)
    outside_u, outside_v = np.maximum(du, 0), np.maximum(dv, 0)
    outside = np.sqrt(outside_u * outside_u + outside_v * outside_v)
    distance: Field = outside + np.minimum(np.maximum(du, dv), 0) - radius
    return distance


def line(u: Field, v: Field, start: tuple[float, float], end: tuple[float, float], radius: float) -> Field:
    """Return the distance to a straight stroke with round ends, ``radius`` being half its thickness."""
    (x, y), along, down = start, end[0] - start[0], end[1] - start[1]
    du, dv = u - x, v - y
    square = along * along + down * down
    share = np.minimum(np.maximum(du * (along / square) + dv * (down / square), 0), 1)
    du, dv = du - share * along, dv - share * down
    distance: Field = np.sqrt(du * du + dv * dv) - radius
    return distance


def polygon(u: Field, v: Field, corners: Sequence[tuple[float, float]]) -> Field:
    """Return the distance to a convex polygon, corners given clockwise as seen on the screen (y down)."""
    distance: Field | None = None
    for (x, y), (next_x, next_y) in zip(corners, [*corners[1:], corners[0]], strict=True):
        length = math.sqrt((next_x - x) * (next_x - x) + (next_y - y) * (next_y - y))
        normal_u, normal_v = (next_y - y) / length, (x - next_x) / length
        edge = u * normal_u + (v * normal_v - (x * normal_u + y * normal_v))
        distance = edge if distance is None else np.maximum(distance, edge)
    assert distance is not None
    return distance


def ring(distance: Field, thickness: float) -> Field:
    """Return the distance to a line of the given thickness that follows the edge of a shape."""
    return np.abs(distance) - thickness / 2


def turned(u: Field, v: Field, x: float, y: float, cosine: float, sine: float) -> tuple[Field, Field]:
    """Return coordinates around (x, y) whose first axis points in the direction (cosine, sine)."""
    du, dv = u - x, v - y
    return du * cosine + dv * sine, dv * cosine - du * sine


def curve(x: Field, knots: Sequence[float]) -> Field:
    """Return a smooth curve over x ∈ [0, 1]: the uniform quadratic B-spline with the given control heights."""
    heights = np.array(knots, dtype=np.float32)
    spans = len(knots) - 2
    position = np.minimum(np.maximum(x, 0), 1) * spans
    first = np.minimum(np.floor(position), spans - 1)
    share = position - first
    index = first.astype(np.int64)
    rest = 1 - share
    blend = rest * rest * heights[index] + share * share * heights[index + 2]
    line_heights: Field = (blend + (1 + 2 * share * rest) * heights[index + 1]) * 0.5
    return line_heights
