"""How each kind of thing is drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from diptych.data.datasets.scenes.canvas import (
    COLOURS,
    INK,
    RGB,
    WHITE,
    Field,
    Pen,
    box,
    circle,
    ellipse,
    line,
    mix,
    outline,
    polygon,
)

_WOOD: RGB = (150, 104, 66)
_GLASS: RGB = (186, 224, 240)
_LAMP: RGB = (255, 226, 130)
_CREAM: RGB = (244, 232, 208)


def _dark(colour: str) -> RGB:
    return outline(COLOURS[colour])


def _deep(colour: str) -> RGB:
    return mix(COLOURS[colour], _dark(colour), 0.45)


def _ball(pen: Pen, colour: str, paint: Field) -> None:
    edge = circle(pen.u, pen.v, 0, 0, 0.92)
    pen.body(edge, paint, _dark(colour))
    pen.fill(np.maximum(edge, -circle(pen.u, pen.v, -0.25, -0.3, 1.0)), _dark(colour), 0.3)
    pen.fill(ellipse(pen.u, pen.v, -0.36, -0.42, 0.22, 0.16), WHITE, 0.55)


def _boat(pen: Pen, colour: str, paint: Field) -> None:
    pen.fill(line(pen.u, pen.v, (0, -0.95), (0, 0.45), 0.045), outline(_WOOD))
    sails = np.minimum(
        polygon(pen.u, pen.v, [(0.1, -0.72), (0.82, 0.28), (0.1, 0.28)]),
        polygon(pen.u, pen.v, [(-0.1, -0.58), (-0.1, 0.28), (-0.66, 0.28)]),
    )
    pen.body(sails, paint, _dark(colour), 0.045)
    hull = polygon(pen.u, pen.v, [(-0.92, 0.44), (0.96, 0.44), (0.6, 0.94), (-0.62, 0.94)])
    pen.solid(hull, COLOURS[colour])
    pen.fill(np.maximum(hull, np.abs(pen.v - 0.54) - 0.05), WHITE, 0.8)


def _car(pen: Pen, colour: str, paint: Field) -> None:
    cabin = polygon(pen.u, pen.v, [(-0.4, -0.48), (0.3, -0.48), (0.62, 0.1), (-0.66, 0.1)]) - 0.05
    pen.solid(cabin, COLOURS[colour])
    pen.fill(np.maximum(cabin + 0.12, 0.045 - np.abs(pen.u + 0.04)), pen.shaded(_GLASS, 0.3))
    pen.body(box(pen.u, pen.v, 0, 0.33, 0.9, 0.26) - 0.08, paint, _dark(colour))
    pen.solid(circle(pen.u, pen.v, 0.84, 0.24, 0.09), _LAMP, 0.03)
    for x in (-0.54, 0.54):
        wheel = circle(pen.u, pen.v, x, 0.68, 0.28)
        pen.fill(wheel, INK)
        pen.fill(wheel + 0.14, (206, 208, 214))


def _fish(pen: Pen, colour: str, paint: Field) -> None:
    tail = polygon(pen.u, pen.v, [(-0.95, -0.5), (-0.4, 0), (-0.95, 0.5)])
    fin = polygon(pen.u, pen.v, [(-0.2, -0.66), (0.12, -0.72), (0.4, -0.3), (-0.25, -0.3)])
    pen.solid(np.minimum(fin, tail), _deep(colour))
    body = ellipse(pen.u, pen.v, 0.16, 0, 0.76, 0.48)
    pen.body(body, paint, _dark(colour))
    pen.fill(np.maximum(body, circle(pen.u, pen.v, 1.04, 0, 0.62)), COLOURS[colour])
    pen.fill(circle(pen.u, pen.v, 0.58, -0.12, 0.14), WHITE)
    pen.fill(circle(pen.u, pen.v, 0.61, -0.11, 0.075), INK)


def _house(pen: Pen, colour: str, paint: Field) -> None:
    pen.body(box(pen.u, pen.v, 0, 0.4, 0.74, 0.58), paint, _dark(colour))
    pen.solid(polygon(pen.u, pen.v, [(0, -0.98), (0.96, -0.12), (-0.96, -0.12)]), _deep(colour))
    pen.solid(box(pen.u, pen.v, -0.32, 0.7, 0.2, 0.28), _WOOD, 0.05)
    window = box(pen.u, pen.v, 0.34, 0.36, 0.22, 0.22)
    pen.body(window, _LAMP, WHITE)
    pen.fill(np.maximum(window, np.minimum(np.abs(pen.u - 0.34), np.abs(pen.v - 0.36)) - 0.025), WHITE)


def _kite(pen: Pen, colour: str, paint: Field) -> None:
    for start, end in pairwise([(0.0, 0.4), (0.14, 0.56), (-0.04, 0.72), (0.12, 0.88), (0.02, 1.04)]):
        pen.fill(line(pen.u, pen.v, start, end, 0.025), INK, 0.8)
    sail = polygon(pen.u, pen.v, [(0, -0.98), (0.66, -0.3), (0, 0.46), (-0.66, -0.3)])
    pen.body(sail, paint, _dark(colour))
    cross = np.minimum(np.abs(pen.u), np.abs(pen.v + 0.3)) - 0.025
    pen.fill(np.maximum(sail, cross), _dark(colour), 0.8)


def _mushroom(pen: Pen, colour: str, paint: Field) -> None:
    pen.solid(box(pen.u, pen.v, 0, 0.5, 0.24, 0.46), _CREAM)
    pen.body(np.maximum(ellipse(pen.u, pen.v, 0, 0.12, 0.95, 1.05), pen.v - 0.12), paint, _dark(colour))
    for x, y in ((-0.45, -0.2), (0.1, -0.5), (0.5, -0.15)):
        pen.fill(circle(pen.u, pen.v, x, y, 0.13), WHITE)


def _rocket(pen: Pen, colour: str, paint: Field) -> None:
    pen.fill(ellipse(pen.u, pen.v, 0, 0.72, 0.24, 0.28), _LAMP)
    pen.solid(polygon(np.abs(pen.u), pen.v, [(0.2, 0.1), (0.66, 0.46), (0.7, 0.84), (0.22, 0.56)]), _deep(colour))
    pen.body(np.maximum(ellipse(pen.u, pen.v, 0, 0.05, 0.42, 1.03), pen.v - 0.6), paint, _dark(colour))
    pen.fill(circle(pen.u, pen.v, 0, -0.16, 0.23), WHITE)
    pen.solid(circle(pen.u, pen.v, 0, -0.16, 0.16), _GLASS, 0.04)


_DRAWERS: dict[str, Callable[[Pen, str, Field], None]] = {
    "ball": _ball,
    "boat": _boat,
    "car": _car,
    "fish": _fish,
    "house": _house,
    "kite": _kite,
    "mushroom": _mushroom,
    "rocket": _rocket,
}

CLASS_NAMES: tuple[str, ...] = tuple(_DRAWERS)


def draw_thing(pen: Pen, kind: str, colour: str) -> None:
    """Draw a thing of the given kind into the pen's window."""
    _DRAWERS[kind](pen, colour, pen.shaded(COLOURS[colour]))
