"""Pieces that several backdrops share: ridges, clouds, suns, stars, plants."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from diptych.data.datasets.scenes.canvas import RGB, WHITE, Canvas, Field, circle, curve, ellipse, line, mix, polygon
from diptych.data.datasets.scenes.portable_random import PortableRandom


def sky(canvas: Canvas, *stops: tuple[float, RGB]) -> None:
    """Cover the whole canvas with a vertical gradient through (height, colour) stops."""
    pen = canvas.whole()
    pen.planes[...] = pen.gradient(stops)


def ridge(
    canvas: Canvas, rng: PortableRandom, height: float, swing: float, top: RGB, bottom: RGB, knots: int = 6
) -> Field:
    """Paint rolling land from about ``height`` down to the lower edge and return its upper line over x."""
    heights = [height + rng.uniform(-swing, swing) for _ in range(knots)]
    pen = canvas.strip(height - swing, 1.0)
    crest = curve(pen.u, heights)
    pen.fill(crest - pen.v, pen.gradient([(height - swing, top), (1.0, bottom)]))
    return crest


def sun(canvas: Canvas, x: float, y: float, radius: float, colour: RGB, halo: float = 0.5) -> None:
    """Paint a disc of light with a soft halo."""
    pen = canvas.window(x, y, radius, reach=4.0)
    distance = circle(pen.u, pen.v, 0, 0, 1)
    pen.glow(distance, mix(colour, WHITE, 0.4), halo, 3.0)
    pen.fill(distance, colour)


def cloud(
    canvas: Canvas, rng: PortableRandom, x: float, y: float, scale: float, colour: RGB, opacity: float = 0.85
) -> None:
    """Paint a cloud: a row of discs on a soft flat base."""
    pen = canvas.window(x, y, scale, reach=1.3)
    puffs = ellipse(pen.u, pen.v, 0, 0.18, 1.0, 0.24)
    for place in (-0.5, 0.0, 0.45):
        size = rng.uniform(0.28, 0.46)
        puffs = np.minimum(puffs, circle(pen.u, pen.v, place + rng.uniform(-0.1, 0.1), 0.3 - size, size))
    pen.glow(np.maximum(puffs, pen.v - 0.36), pen.shaded(colour, 0.12), opacity, 0.12)


def clouds(
    canvas: Canvas, rng: PortableRandom, count: int, low: float, high: float, colour: RGB, opacity: float = 0.85
) -> None:
    """Paint some clouds between two heights."""
    for _ in range(count):
        place = rng.uniform(0.05, 0.95), rng.uniform(low, high)
        cloud(canvas, rng, *place, rng.uniform(0.09, 0.17), colour, opacity)


def specks(
    canvas: Canvas, rng: PortableRandom, count: int, low: float, high: float, radius: float, colour: RGB
) -> None:
    """Scatter tiny soft discs: stars, snowflakes, fireflies."""
    for _ in range(count):
        size = radius * rng.uniform(0.6, 1.5)
        pen = canvas.window(rng.uniform(0, 1), rng.uniform(low, high), size, reach=2.2)
        pen.glow(circle(pen.u, pen.v, 0, 0, 0.6), colour, rng.uniform(0.6, 1.0), 1.2)


def tufts(canvas: Canvas, rng: PortableRandom, count: int, low: float, high: float, colour: RGB) -> None:
    """Scatter tufts of three blades."""
    for _ in range(count):
        y = rng.uniform(low, high)
        pen = canvas.window(rng.uniform(0, 1), y, 0.028 * (0.5 + y))
        stem, side = np.maximum(np.abs(pen.u) - 0.12, np.abs(pen.v) - 0.8), np.abs(pen.u) - 0.1
        leaves = line(side, pen.v, (0, 0.8), (0.6, -0.4), 0.1)
        pen.fill(np.minimum(stem, leaves), colour, 0.8)


def ripples(canvas: Canvas, rng: PortableRandom, count: int, low: float, high: float, colour: RGB) -> None:
    """Scatter short level strokes of light on water or sand, longer towards the viewer."""
    for _ in range(count):
        y = rng.uniform(low, high)
        scale = rng.uniform(0.03, 0.07) * (0.4 + y)
        pen = canvas.window(rng.uniform(0, 1), y, scale, reach_down=0.2)
        pen.fill(np.abs(pen.v) + 0.09 * (pen.u * pen.u - 1), colour, 0.55)


def fir(canvas: Canvas, x: float, foot: float, scale: float, colour: RGB, snow: RGB | None = None) -> None:
    """Paint a fir of three tiers that stands at ``foot``."""
    pen = canvas.window(x, foot - scale, scale)
    pen.fill(line(pen.u, pen.v, (0, 0.5), (0, 0.95), 0.09), mix(colour, (92, 62, 44), 0.7))
    tiers = [
        polygon(pen.u, pen.v, [(0, top), (width, low), (-width, low)])
        for top, low, width in ((-1.0, -0.15, 0.36), (-0.6, 0.3, 0.5), (-0.2, 0.72, 0.62))
    ]
    pen.fill(np.minimum(np.minimum(tiers[0], tiers[1]), tiers[2]), pen.shaded(colour, 0.25))
    if snow is not None:
        lying = np.minimum(np.maximum(tiers[0], pen.v + 0.5), np.maximum(tiers[2], np.abs(pen.v - 0.4) - 0.1))
        pen.fill(lying, snow, 0.9)


def round_tree(canvas: Canvas, x: float, foot: float, scale: float, leaves: RGB, trunk: RGB) -> None:
    """Paint a leafy tree that stands at ``foot``."""
    pen = canvas.window(x, foot - scale, scale)
    pen.fill(polygon(pen.u, pen.v, [(-0.09, 0), (0.09, 0), (0.15, 1), (-0.15, 1)]), trunk)
    crown = circle(pen.u, pen.v, 0, -0.42, 0.52)
    for place in (-0.36, 0.36):
        crown = np.minimum(crown, circle(pen.u, pen.v, place, -0.12, 0.38))
    pen.fill(crown, pen.shaded(leaves, 0.3))


@lru_cache(maxsize=8)
def _wash(size: int) -> Field:
    cells = 9
    rng = PortableRandom("watercolour wash")
    rows = [[rng.uniform(-1, 1) for _ in range(cells)] for _ in range(cells)]
    centres = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)
    position = centres * np.float32(cells - 2)
    first = np.floor(position).astype(np.int64)
    share = position - first.astype(np.float32)
    grid = np.array(rows, dtype=np.float32)
    for _ in range(2):
        rest = 1 - share[:, None]
        near, far = share[:, None] * share[:, None], rest * rest
        middle = 1 + 2 * share[:, None] * rest
        grid = ((far * grid[first] + near * grid[first + 2] + middle * grid[first + 1]) * np.float32(0.5)).T
    return np.ascontiguousarray(grid)


def wash(canvas: Canvas, rng: PortableRandom, strength: float = 0.05) -> None:
    """Vary the lightness like watercolour on rough paper; one fixed pattern, mirrored at random."""
    pattern = _wash(canvas.size)
    rows = slice(None, None, -1 if rng.bernoulli(0.5) else 1)
    columns = slice(None, None, -1 if rng.bernoulli(0.5) else 1)
    canvas.planes *= 1 + pattern[rows, columns] * strength
