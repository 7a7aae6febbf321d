"""Patterns on the things in a picture."""

from __future__ import annotations

import numpy as np

from diptych.data.datasets.scenes.palette import COLOURS, pattern_tint
from diptych.data.datasets.scenes.pen import Pen, colour_planes, coverage
from diptych.data.datasets.scenes.shapes import Field

TEXTURES: tuple[str, ...] = ("plain", "striped", "dotted", "checked")

_STRIPE_PERIOD = 0.5
_DOT_PERIOD = 0.46
_CHECK_PERIOD = 0.62


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
