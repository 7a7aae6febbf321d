"""How each kind of thing is drawn, and the patterns on it."""

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
    colour_planes,
    coverage,
    ellipse,
    line,
    mix,
    outline,
    pattern_tint,
    polygon,
    ring,
    rounded_box,
    turned,
)

TEXTURES: tuple[str, ...] = ("plain", "striped", "dotted", "checked")
_STRIPE_PERIOD = 0.5
_DOT_PERIOD = 0.46
_CHECK_PERIOD = 0.62
_WOOD: RGB = (150, 104, 66)
_CREAM: RGB = (250, 240, 216)
_LEAF: RGB = (72, 142, 70)
_GLASS: RGB = (186, 224, 240)
_LAMP: RGB = (255, 226, 130)
_PETALS = ((0.0, -0.46), (0.4, -0.23), (0.4, 0.23), (0.0, 0.46), (-0.4, 0.23), (-0.4, -0.23))


def _wave(values: Field, period: float) -> Field:
    """Return the distance to bands of half a period each: a triangle wave through ±period / 4."""
    phase = values / period
    bands: Field = (np.abs(phase - np.floor(phase) - 0.5) - 0.25) * period
    return bands


def _stripes(pen: Pen) -> Field:
    return coverage(_wave(pen.u * 0.8 + pen.v * 0.6, _STRIPE_PERIOD), pen.pixels)


def _dots(pen: Pen) -> Field:
    rows = np.floor(pen.v / _DOT_PERIOD)
    shift = (rows - 2 * np.floor(rows / 2)) * 0.5
    across = pen.u / _DOT_PERIOD + shift
    du = across - np.floor(across) - 0.5
    dv = pen.v / _DOT_PERIOD - rows - 0.5
    return coverage((np.sqrt(du * du + dv * dv) - 0.28) * _DOT_PERIOD, pen.pixels)


def _checks(pen: Pen) -> Field:
    first = coverage(_wave(pen.u, _CHECK_PERIOD), pen.pixels)
    second = coverage(_wave(pen.v, _CHECK_PERIOD), pen.pixels)
    return first + second - 2 * first * second


def textured(pen: Pen, colour: str, texture: str) -> Field:
    """Return the shaded paint of a thing with the named colour and texture, over the pen's window."""
    base = colour_planes(COLOURS[colour])
    if texture == "plain":
        return pen.shaded(base)
    pattern = {"striped": _stripes, "dotted": _dots, "checked": _checks}[texture](pen)
    tint = colour_planes(pattern_tint(colour))
    return pen.shaded(base + (tint - base) * pattern)


def _dark(colour: str) -> RGB:
    return outline(COLOURS[colour])


def _deep(colour: str) -> RGB:
    return mix(COLOURS[colour], _dark(colour), 0.45)


def _shine(pen: Pen, x: float, y: float, width: float, height: float, opacity: float = 0.55) -> None:
    pen.fill(ellipse(pen.u, pen.v, x, y, width, height), WHITE, opacity)


def _ball(pen: Pen, colour: str, paint: Field) -> None:
    edge = circle(pen.u, pen.v, 0, 0, 0.92)
    pen.body(edge, paint, _dark(colour))
    away_from_light = np.maximum(edge, -circle(pen.u, pen.v, -0.25, -0.3, 1.0))
    pen.fill(away_from_light, _dark(colour), 0.3)
    _shine(pen, -0.36, -0.42, 0.22, 0.16)
    _shine(pen, -0.08, -0.6, 0.07, 0.05)


def _balloon(pen: Pen, colour: str, paint: Field) -> None:
    for side in (-1, 1):
        pen.fill(line(pen.u, pen.v, (0.24 * side, 0.5), (0.15 * side, 0.78), 0.025), INK)
    envelope = np.minimum(
        circle(pen.u, pen.v, 0, -0.28, 0.7),
        polygon(pen.u, pen.v, [(-0.63, 0.02), (0.63, 0.02), (0.22, 0.56), (-0.22, 0.56)]),
    )
    pen.body(envelope, paint, _dark(colour))
    for width in (0.26, 0.52):
        seam = np.maximum(ring(ellipse(pen.u, pen.v, 0, -0.2, width, 0.8), 0.03), envelope)
        pen.fill(seam, _dark(colour), 0.4)
    _shine(pen, -0.34, -0.56, 0.1, 0.2, 0.5)
    pen.solid(box(pen.u, pen.v, 0, 0.55, 0.22, 0.03), _deep(colour), 0.02)
    pen.solid(rounded_box(pen.u, pen.v, 0, 0.86, 0.18, 0.12, 0.05), _WOOD)


def _boat(pen: Pen, colour: str, paint: Field) -> None:
    pen.fill(line(pen.u, pen.v, (0, -0.95), (0, 0.45), 0.045), outline(_WOOD))
    pen.fill(polygon(pen.u, pen.v, [(0.03, -1.0), (0.36, -0.89), (0.03, -0.78)]), _deep(colour))
    sails = np.minimum(
        polygon(pen.u, pen.v, [(0.1, -0.72), (0.82, 0.28), (0.1, 0.28)]),
        polygon(pen.u, pen.v, [(-0.1, -0.58), (-0.1, 0.28), (-0.66, 0.28)]),
    )
    pen.body(sails, paint, _dark(colour), 0.045)
    hull = polygon(pen.u, pen.v, [(-0.92, 0.44), (0.96, 0.44), (0.6, 0.94), (-0.62, 0.94)])
    pen.solid(hull, COLOURS[colour])
    pen.fill(np.maximum(hull, np.abs(pen.v - 0.54) - 0.05), WHITE, 0.8)
    pen.fill(np.maximum(hull, 0.8 - pen.v), _dark(colour), 0.4)


def _butterfly(pen: Pen, colour: str, paint: Field) -> None:
    mirrored = np.abs(pen.u)
    along, across = turned(mirrored, pen.v, 0.5, -0.34, 0.8, -0.6)
    upper = ellipse(along, across, 0, 0, 0.55, 0.4)
    along, across = turned(mirrored, pen.v, 0.4, 0.38, 0.8, 0.6)
    lower = ellipse(along, across, 0, 0, 0.44, 0.3)
    pen.body(lower, pen.shaded(_deep(colour)), _dark(colour))
    pen.body(upper, paint, _dark(colour))
    pen.fill(circle(mirrored, pen.v, 0.46, 0.42, 0.12), WHITE, 0.75)
    pen.fill(circle(mirrored, pen.v, 0.72, -0.58, 0.1), WHITE, 0.75)
    pen.fill(line(mirrored, pen.v, (0.02, -0.42), (0.24, -0.86), 0.03), INK)
    pen.fill(circle(mirrored, pen.v, 0.25, -0.88, 0.055), INK)
    pen.fill(line(pen.u, pen.v, (0, -0.4), (0, 0.56), 0.085), INK)
    pen.fill(circle(pen.u, pen.v, 0, -0.46, 0.12), INK)


def _car(pen: Pen, colour: str, paint: Field) -> None:
    cabin = polygon(pen.u, pen.v, [(-0.4, -0.48), (0.3, -0.48), (0.62, 0.1), (-0.66, 0.1)]) - 0.05
    pen.solid(cabin, COLOURS[colour])
    glass = np.maximum(cabin + 0.12, 0.045 - np.abs(pen.u + 0.04))
    pen.fill(glass, pen.shaded(_GLASS, 0.3))
    body = rounded_box(pen.u, pen.v, 0, 0.33, 0.98, 0.34, 0.22)
    pen.body(body, paint, _dark(colour))
    pen.fill(np.maximum(body, 0.58 - pen.v), _dark(colour), 0.6)
    pen.solid(circle(pen.u, pen.v, 0.84, 0.24, 0.09), _LAMP, 0.03)
    pen.fill(circle(pen.u, pen.v, -0.88, 0.24, 0.07), (208, 60, 50))
    for x in (-0.54, 0.54):
        wheel = circle(pen.u, pen.v, x, 0.68, 0.28)
        pen.fill(wheel, INK)
        pen.fill(wheel + 0.14, (206, 208, 214))
        pen.fill(wheel + 0.23, INK)


def _fish(pen: Pen, colour: str, paint: Field) -> None:
    tail = np.minimum(
        polygon(pen.u, pen.v, [(-0.98, -0.5), (-0.45, -0.08), (-0.5, 0.12), (-0.82, 0.04)]),
        polygon(pen.u, pen.v, [(-0.45, 0.08), (-0.98, 0.5), (-0.82, -0.04), (-0.5, -0.12)]),
    )
    fin = polygon(pen.u, pen.v, [(-0.2, -0.66), (0.12, -0.72), (0.4, -0.3), (-0.25, -0.3)])
    belly = polygon(pen.u, pen.v, [(-0.1, 0.3), (0.3, 0.3), (-0.02, 0.7), (-0.18, 0.66)])
    pen.solid(np.minimum(np.minimum(fin, belly), tail), _deep(colour))
    body = ellipse(pen.u, pen.v, 0.16, 0, 0.76, 0.48)
    pen.body(body, paint, _dark(colour))
    pen.fill(np.maximum(body, circle(pen.u, pen.v, 1.04, 0, 0.62)), COLOURS[colour])
    pen.fill(np.maximum(body, ring(circle(pen.u, pen.v, 1.04, 0, 0.62), 0.05)), _dark(colour), 0.6)
    pen.fill(circle(pen.u, pen.v, 0.58, -0.12, 0.14), WHITE)
    pen.fill(circle(pen.u, pen.v, 0.61, -0.11, 0.075), INK)
    pen.fill(line(pen.u, pen.v, (0.72, 0.17), (0.84, 0.14), 0.03), _dark(colour))
    _shine(pen, 0.02, -0.27, 0.26, 0.06, 0.4)


def _flower(pen: Pen, colour: str, paint: Field) -> None:
    pen.fill(line(pen.u, pen.v, (0.0, -0.1), (0.04, 1.0), 0.06), outline(_LEAF))
    pen.fill(line(pen.u, pen.v, (0.0, -0.1), (0.04, 1.0), 0.035), _LEAF)
    for side in (-1, 1):
        along, across = turned(pen.u, pen.v, 0.26 * side, 0.68, 0.8, -0.6 * side)
        pen.solid(ellipse(along, across, 0, 0, 0.28, 0.11), _LEAF, 0.04)
    petals = circle(pen.u, pen.v, _PETALS[0][0], _PETALS[0][1] - 0.3, 0.27)
    for x, y in _PETALS[1:]:
        petals = np.minimum(petals, circle(pen.u, pen.v, x, y - 0.3, 0.27))
    pen.body(petals, paint, _dark(colour))
    heart: RGB = (122, 78, 44) if colour in ("yellow", "white", "orange") else (250, 206, 70)
    pen.solid(circle(pen.u, pen.v, 0, -0.3, 0.24), heart, 0.04)
    _shine(pen, -0.07, -0.37, 0.08, 0.06, 0.4)


def _house(pen: Pen, colour: str, paint: Field) -> None:
    pen.solid(box(pen.u, pen.v, 0.46, -0.62, 0.12, 0.3), (168, 96, 80), 0.05)
    pen.body(box(pen.u, pen.v, 0, 0.4, 0.74, 0.58), paint, _dark(colour))
    roof = polygon(pen.u, pen.v, [(0, -0.98), (0.96, -0.12), (-0.96, -0.12)])
    pen.solid(roof, _deep(colour))
    pen.fill(np.maximum(roof, np.abs(pen.v + 0.2) - 0.03), _dark(colour), 0.4)
    pen.solid(circle(pen.u, pen.v, 0, -0.46, 0.14), _LAMP, 0.05)
    pen.solid(rounded_box(pen.u, pen.v, -0.32, 0.7, 0.2, 0.3, 0.06), _WOOD, 0.05)
    pen.fill(circle(pen.u, pen.v, -0.22, 0.72, 0.035), _LAMP)
    window = box(pen.u, pen.v, 0.34, 0.36, 0.22, 0.22)
    pen.body(window, _LAMP, WHITE, 0.06)
    pen.fill(np.maximum(window, np.minimum(np.abs(pen.u - 0.34), np.abs(pen.v - 0.36)) - 0.025), WHITE)


def _kite(pen: Pen, colour: str, paint: Field) -> None:
    tail = [(0.0, 0.4), (0.14, 0.56), (-0.04, 0.72), (0.12, 0.88), (0.02, 1.04)]
    for start, end in pairwise(tail):
        pen.fill(line(pen.u, pen.v, start, end, 0.025), INK, 0.8)
    for x, y in tail[1:-1]:
        bow = np.abs(pen.u - x)
        pen.solid(np.maximum(np.abs(pen.v - y) - bow * 0.7, bow - 0.12), _deep(colour), 0.02)
    sail = polygon(pen.u, pen.v, [(0, -0.98), (0.66, -0.3), (0, 0.46), (-0.66, -0.3)])
    pen.body(sail, paint, _dark(colour))
    shadow = np.maximum(sail, -pen.u * np.ones_like(pen.v))
    pen.fill(shadow, _dark(colour), 0.22)
    cross = np.minimum(np.abs(pen.u), np.abs(pen.v + 0.3)) - 0.025
    pen.fill(np.maximum(sail, cross), _dark(colour), 0.8)


def _mushroom(pen: Pen, colour: str, paint: Field) -> None:
    half_width = 0.24 + 0.1 * np.maximum(pen.v, 0)
    stem = np.maximum(np.abs(pen.u) - half_width, np.abs(pen.v - 0.46) - 0.52) * 0.98
    pen.solid(stem, _CREAM)
    pen.solid(ellipse(pen.u, pen.v, 0, 0.1, 0.78, 0.16), mix(_CREAM, _WOOD, 0.3))
    dome = ellipse(pen.u, pen.v, 0, 0.1, 0.95, 1.0)
    brim = ellipse(pen.u, pen.v, 0, 0.28, 1.3, 0.32)
    cap = np.maximum(np.maximum(dome, pen.v - 0.12), -np.maximum(brim, -0.2 - pen.v))
    pen.body(cap, paint, _dark(colour))
    _shine(pen, -0.4, -0.5, 0.2, 0.1, 0.45)


def _rocket(pen: Pen, colour: str, paint: Field) -> None:
    mirrored = np.abs(pen.u)
    pen.fill(ellipse(pen.u, pen.v, 0, 0.74, 0.24, 0.3), (246, 134, 40))
    pen.fill(ellipse(pen.u, pen.v, 0, 0.7, 0.13, 0.2), (255, 228, 120))
    fins = polygon(mirrored, pen.v, [(0.2, 0.1), (0.66, 0.46), (0.7, 0.84), (0.22, 0.56)])
    pen.solid(fins, _deep(colour))
    hull = np.maximum(ellipse(pen.u, pen.v, 0, 0.05, 0.42, 1.03), pen.v - 0.6)
    pen.body(hull, paint, _dark(colour))
    pen.fill(np.maximum(hull, pen.v + 0.52), _deep(colour))
    pen.fill(np.maximum(hull, 0.46 - pen.v), _deep(colour))
    pen.fill(circle(pen.u, pen.v, 0, -0.16, 0.23), WHITE)
    pen.solid(circle(pen.u, pen.v, 0, -0.16, 0.16), _GLASS, 0.04)
    _shine(pen, -0.05, -0.21, 0.05, 0.05, 0.8)


def _umbrella(pen: Pen, colour: str, paint: Field) -> None:
    pen.fill(line(pen.u, pen.v, (0, -0.98), (0, 0.8), 0.05), outline(_WOOD))
    hook = np.maximum(ring(circle(pen.u, pen.v, 0.16, 0.78, 0.16), 0.1), 0.78 - pen.v)
    pen.fill(hook, outline(_WOOD))
    canopy = np.maximum(ellipse(pen.u, pen.v, 0, 0.1, 0.97, 0.95), pen.v - 0.1)
    for x in (-0.64, 0.0, 0.64):
        canopy = np.maximum(canopy, -ellipse(pen.u, pen.v, x, 0.14, 0.3, 0.17))
    pen.body(canopy, paint, _dark(colour))
    for width in (0.32, 0.66):
        rib = np.maximum(ring(ellipse(pen.u, pen.v, 0, 0.1, width, 0.95), 0.04), canopy)
        pen.fill(rib, _dark(colour), 0.45)
    _shine(pen, -0.46, -0.42, 0.12, 0.14, 0.4)


_DRAWERS: dict[str, Callable[[Pen, str, Field], None]] = {
    "ball": _ball,
    "balloon": _balloon,
    "boat": _boat,
    "butterfly": _butterfly,
    "car": _car,
    "fish": _fish,
    "flower": _flower,
    "house": _house,
    "kite": _kite,
    "mushroom": _mushroom,
    "rocket": _rocket,
    "umbrella": _umbrella,
}

CLASS_NAMES: tuple[str, ...] = tuple(_DRAWERS)


def draw_thing(pen: Pen, kind: str, colour: str, texture: str) -> None:
    """Draw a thing of the given kind into the pen's window."""
    _DRAWERS[kind](pen, colour, textured(pen, colour, texture))
