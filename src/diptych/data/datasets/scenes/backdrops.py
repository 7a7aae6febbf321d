"""The places in which scenes happen, and the pieces that they share: ridges, clouds, suns, stars, trees."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from diptych.data.datasets.scenes.canvas import (
    RGB,
    WHITE,
    Canvas,
    Field,
    PortableRandom,
    box,
    circle,
    curve,
    ellipse,
    line,
    mix,
    polygon,
)


def _sky(canvas: Canvas, rng: PortableRandom, first: RGB, second: RGB, horizon: RGB) -> None:
    """Cover the canvas from a colour between two at the top to that of the horizon."""
    pen = canvas.strip(0.0, 1.0)
    pen.planes[...] = pen.gradient(0.0, mix(first, second, rng.uniform(0, 1)), 0.7, horizon)


def _ridge(canvas: Canvas, rng: PortableRandom, height: float, swing: float, top: RGB, bottom: RGB) -> Field:
    """Paint rolling land from about ``height`` down to the lower edge and return its upper line over x."""
    heights = [height + rng.uniform(-swing, swing) for _ in range(6)]
    pen = canvas.strip(height - swing, 1.0)
    crest = curve(pen.u, heights)
    pen.fill(crest - pen.v, pen.gradient(height - swing, top, 1.0, bottom))
    return crest


def _sun(canvas: Canvas, rng: PortableRandom, colour: RGB, halo: float = 0.5) -> None:
    """Paint a disc of light with a soft halo."""
    pen = canvas.window(rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.2), 0.07, reach=4.0)
    distance = circle(pen.u, pen.v, 0, 0, 1)
    pen.glow(distance, mix(colour, WHITE, 0.4), halo, 3.0)
    pen.fill(distance, colour)


def _clouds(canvas: Canvas, rng: PortableRandom, count: int) -> None:
    """Paint some clouds: rows of discs on a soft flat base."""
    for _ in range(count):
        pen = canvas.window(rng.uniform(0.05, 0.95), rng.uniform(0.08, 0.32), rng.uniform(0.09, 0.17), reach=1.3)
        puffs = ellipse(pen.u, pen.v, 0, 0.18, 1.0, 0.24)
        for place in (-0.5, 0.0, 0.45):
            size = rng.uniform(0.28, 0.46)
            puffs = np.minimum(puffs, circle(pen.u, pen.v, place, 0.3 - size, size))
        pen.glow(np.maximum(puffs, pen.v - 0.36), WHITE, 0.8, 0.12)


def _specks(canvas: Canvas, rng: PortableRandom, count: int, low: float, high: float, colour: RGB) -> None:
    """Scatter tiny soft discs: stars, snowflakes, grass."""
    for _ in range(count):
        pen = canvas.window(rng.uniform(0, 1), rng.uniform(low, high), rng.uniform(0.004, 0.01), reach=2.2)
        pen.glow(circle(pen.u, pen.v, 0, 0, 0.6), colour, rng.uniform(0.6, 1.0), 1.2)


def _firs(canvas: Canvas, rng: PortableRandom, crest: Field, colour: RGB) -> None:
    """Paint firs of three tiers that stand on the line of a ridge."""
    for _ in range(1 + rng.integer(4)):
        x, scale = rng.uniform(0.03, 0.97), rng.uniform(0.05, 0.08)
        pen = canvas.window(x, float(crest[0, int(x * canvas.size)]) + 0.02 - scale, scale)
        for top, low, width in ((-1.0, -0.15, 0.36), (-0.6, 0.3, 0.5), (-0.2, 0.95, 0.62)):
            pen.fill(polygon(pen.u, pen.v, [(0, top), (width, low), (-width, low)]), pen.shaded(colour, 0.25))


def _meadow(canvas: Canvas, rng: PortableRandom) -> None:
    _sky(canvas, rng, (112, 188, 236), (146, 208, 244), (220, 240, 250))
    _sun(canvas, rng, (255, 224, 110))
    _clouds(canvas, rng, 2 + rng.integer(2))
    _ridge(canvas, rng, 0.54, 0.08, (146, 200, 130), (118, 180, 110))
    _ridge(canvas, rng, 0.62, 0.05, (136, 198, 80), (74, 146, 62))
    _specks(canvas, rng, 16, 0.7, 0.98, (58, 128, 56))


def _seaside(canvas: Canvas, rng: PortableRandom) -> None:
    _sky(canvas, rng, (120, 200, 240), (160, 214, 240), (230, 244, 250))
    _sun(canvas, rng, (255, 232, 140))
    _clouds(canvas, rng, 1 + rng.integer(3))
    sea = canvas.strip(0.46, 0.9)
    sea.fill(0.47 - sea.v, sea.gradient(0.46, (40, 144, 188), 0.78, (112, 208, 212)))
    _ridge(canvas, rng, 0.785, 0.02, (240, 210, 152), (216, 176, 116))


def _night(canvas: Canvas, rng: PortableRandom) -> None:
    _sky(canvas, rng, (14, 18, 54), (28, 20, 66), (72, 68, 130))
    _specks(canvas, rng, 22, 0.02, 0.62, (255, 248, 220))
    _sun(canvas, rng, (250, 240, 206), 0.3)
    _ridge(canvas, rng, 0.7, 0.08, (48, 50, 98), (30, 34, 70))
    _firs(canvas, rng, _ridge(canvas, rng, 0.78, 0.04, (38, 62, 82), (18, 30, 48)), (20, 42, 58))


def _snow(canvas: Canvas, rng: PortableRandom) -> None:
    _sky(canvas, rng, (150, 184, 216), (186, 198, 222), (232, 238, 246))
    _ridge(canvas, rng, 0.46, 0.12, (158, 176, 206), (206, 220, 240))
    _firs(canvas, rng, _ridge(canvas, rng, 0.64, 0.06, (246, 249, 254), (208, 222, 240)), (64, 110, 104))
    _specks(canvas, rng, 24, 0.0, 1.0, WHITE)


def _city(canvas: Canvas, rng: PortableRandom) -> None:
    _sky(canvas, rng, (96, 126, 186), (120, 108, 172), (248, 208, 180))
    edge = -0.02
    while edge < 1.0:
        width, height = rng.uniform(0.09, 0.17), rng.uniform(0.28, 0.6)
        tower = canvas.window(edge + width / 2, height + 0.26, 0.26)
        half = width / 2 / 0.26
        wall = mix((104, 95, 136), (60, 58, 96), rng.uniform(0, 0.6))
        tower.fill(np.maximum(np.abs(tower.u) - half, -1 - tower.v), wall)
        across, down = tower.u / 0.15, (tower.v + 1) / 0.2
        window = box(across - np.floor(across), down - np.floor(down), 0.5, 0.5, 0.26, 0.3) * 0.15
        inside = np.maximum(np.abs(tower.u) - half + 0.06, -0.92 - tower.v)
        tower.fill(np.maximum(window, inside), (255, 224, 142), rng.uniform(0.4, 0.75))
        edge += width
    street = canvas.strip(0.74, 1.0)
    street.fill(0.76 - street.v, (186, 180, 186))
    street.fill(0.8 - street.v, (94, 92, 106))


def _underwater(canvas: Canvas, rng: PortableRandom) -> None:
    _sky(canvas, rng, (88, 200, 220), (72, 180, 226), (16, 84, 132))
    _ridge(canvas, rng, 0.87, 0.03, (214, 200, 152), (172, 158, 122))
    for _ in range(3 + rng.integer(3)):
        weed = canvas.window(rng.uniform(0.03, 0.97), 0.86, rng.uniform(0.07, 0.13))
        for start, end in pairwise([(0.0, 1.0), (0.16, 0.5), (-0.16, 0.0), (0.16, -0.5), (0.0, -0.9)]):
            weed.fill(line(weed.u, weed.v, start, end, 0.09), (56, 142, 86))
    for _ in range(8):
        pen = canvas.window(rng.uniform(0, 1), rng.uniform(0.05, 0.8), rng.uniform(0.008, 0.02), reach=1.6)
        pen.fill(circle(pen.u, pen.v, 0, 0, 0.9), WHITE, 0.4)


_PAINTERS: dict[str, Callable[[Canvas, PortableRandom], None]] = {
    "meadow": _meadow,
    "seaside": _seaside,
    "night": _night,
    "snow": _snow,
    "city": _city,
    "underwater": _underwater,
}

BACKGROUNDS: tuple[str, ...] = tuple(_PAINTERS)


def draw_backdrop(canvas: Canvas, background: str, rng: PortableRandom) -> None:
    """Cover the canvas with the named place; the random numbers give it its weather, hills and trees."""
    _PAINTERS[background](canvas, rng)
