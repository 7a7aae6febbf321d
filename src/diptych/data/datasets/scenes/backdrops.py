"""The places in which scenes happen, and the pieces that they share: ridges, clouds, suns, stars, plants."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

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
    ring,
)


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


def _between(rng: PortableRandom, first: RGB, second: RGB) -> RGB:
    return mix(first, second, rng.uniform(0, 1))


def _meadow(canvas: Canvas, rng: PortableRandom) -> None:
    blue = _between(rng, (112, 188, 236), (146, 208, 244))
    sky(canvas, (0.0, blue), (0.6, mix(blue, WHITE, 0.75)))
    sun(canvas, rng.choice((0.14, 0.3, 0.72, 0.86)), rng.uniform(0.1, 0.2), 0.07, (255, 224, 110))
    clouds(canvas, rng, 2 + rng.integer(2), 0.08, 0.34, WHITE)
    far = _between(rng, (136, 196, 142), (158, 206, 120))
    ridge(canvas, rng, 0.54, 0.08, far, mix(far, (92, 160, 84), 0.5))
    near = _between(rng, (122, 194, 82), (150, 204, 76))
    crest = ridge(canvas, rng, 0.62, 0.05, near, (74, 146, 62))
    for _ in range(rng.integer(3)):
        x = rng.uniform(0.05, 0.95)
        foot = float(crest[0, int(x * canvas.size)])
        round_tree(canvas, x, foot + 0.02, rng.uniform(0.04, 0.06), (70, 138, 70), (104, 78, 54))
    tufts(canvas, rng, 9, 0.7, 0.98, (58, 128, 56))


def _seaside(canvas: Canvas, rng: PortableRandom) -> None:
    blue = _between(rng, (120, 200, 240), (160, 214, 240))
    sky(canvas, (0.0, blue), (0.48, mix(blue, WHITE, 0.8)))
    sun(canvas, rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.2), 0.06, (255, 232, 140))
    clouds(canvas, rng, 1 + rng.integer(3), 0.1, 0.3, WHITE, 0.75)
    sea = canvas.strip(0.46, 0.9)
    water = _between(rng, (36, 132, 190), (44, 156, 186))
    sea.fill(0.47 - sea.v, sea.gradient([(0.46, water), (0.78, (112, 208, 212))]))
    ripples(canvas, rng, 12, 0.5, 0.72, WHITE)
    ridge(canvas, rng, 0.755, 0.03, WHITE, WHITE, knots=5)
    sand = _between(rng, (244, 216, 158), (238, 204, 146))
    ridge(canvas, rng, 0.785, 0.02, sand, mix(sand, (206, 164, 106), 0.6), knots=5)
    specks(canvas, rng, 10, 0.84, 0.99, 0.006, (200, 160, 108))


def _night(canvas: Canvas, rng: PortableRandom) -> None:
    top = _between(rng, (14, 18, 54), (28, 20, 66))
    sky(canvas, (0.0, top), (0.8, _between(rng, (64, 70, 132), (84, 64, 128))))
    specks(canvas, rng, 22, 0.02, 0.62, 0.007, (255, 248, 220))
    _moon(canvas, rng, top)
    hills = _between(rng, (44, 54, 100), (52, 48, 98))
    ridge(canvas, rng, 0.7, 0.08, hills, (30, 34, 70))
    crest = ridge(canvas, rng, 0.78, 0.04, (38, 62, 82), (18, 30, 48))
    for _ in range(1 + rng.integer(4)):
        x = rng.uniform(0.03, 0.97)
        fir(canvas, x, float(crest[0, int(x * canvas.size)]) + 0.02, rng.uniform(0.04, 0.07), (20, 42, 58))


def _moon(canvas: Canvas, rng: PortableRandom, dark: RGB) -> None:
    pen = canvas.window(rng.choice((0.16, 0.32, 0.7, 0.84)), rng.uniform(0.12, 0.24), 0.08, reach=3.2)
    disc = circle(pen.u, pen.v, 0, 0, 1)
    pen.glow(disc, (190, 190, 230), 0.4, 2.0)
    if rng.bernoulli(0.5):
        pen.fill(np.maximum(disc, -circle(pen.u, pen.v, 0.5, -0.2, 0.9)), (255, 244, 200))
        return
    pen.fill(disc, (250, 240, 206))
    for x, y, radius in ((-0.3, -0.2, 0.22), (0.35, 0.3, 0.28), (0.2, -0.5, 0.14)):
        pen.fill(circle(pen.u, pen.v, x, y, radius), mix((250, 240, 206), dark, 0.14))


def _desert(canvas: Canvas, rng: PortableRandom) -> None:
    air = rng.choice(((112, 186, 220), (150, 200, 220), (244, 190, 136)))
    sky(canvas, (0.0, air), (0.58, (252, 232, 196)))
    sun(canvas, rng.uniform(0.15, 0.85), rng.uniform(0.1, 0.25), 0.075, (255, 240, 190), 0.7)
    rock = _between(rng, (206, 130, 92), (190, 122, 104))
    if rng.bernoulli(0.6):
        _mesa(canvas, rng, rock)
    ridge(canvas, rng, 0.58, 0.06, (242, 196, 128), (224, 164, 98), knots=5)
    crest = ridge(canvas, rng, 0.68, 0.05, (246, 206, 140), (220, 156, 88), knots=5)
    for _ in range(1 + rng.integer(3)):
        x = rng.uniform(0.05, 0.95)
        _cactus(canvas, x, float(crest[0, int(x * canvas.size)]) + 0.03, rng.uniform(0.05, 0.08))
    ripples(canvas, rng, 8, 0.78, 0.98, (200, 138, 76))


def _mesa(canvas: Canvas, rng: PortableRandom, rock: RGB) -> None:
    left = rng.uniform(0.0, 0.6)
    width, top = rng.uniform(0.2, 0.4), rng.uniform(0.38, 0.46)
    pen = canvas.strip(top, 0.66)
    right = left + width
    pen.fill(
        polygon(pen.u, pen.v, [(left + 0.04, top), (right - 0.04, top), (right + 0.03, 0.66), (left - 0.03, 0.66)]),
        pen.gradient([(top, rock), (0.64, mix(rock, (250, 220, 180), 0.5))]),
    )


def _cactus(canvas: Canvas, x: float, foot: float, scale: float) -> None:
    pen = canvas.window(x, foot - scale, scale)
    arms = line(pen.u, pen.v, (0, -0.8), (0, 1.0), 0.2)
    for side, height in ((-1, 0.1), (1, -0.15)):
        arms = np.minimum(arms, line(pen.u, pen.v, (0, height), (0.55 * side, height), 0.14))
        arms = np.minimum(arms, line(pen.u, pen.v, (0.55 * side, height), (0.55 * side, height - 0.4), 0.14))
    pen.fill(arms, pen.shaded((98, 146, 92), 0.25))


def _snow(canvas: Canvas, rng: PortableRandom) -> None:
    grey = _between(rng, (150, 184, 216), (186, 198, 222))
    sky(canvas, (0.0, grey), (0.6, (232, 238, 246)))
    _peaks(canvas, rng)
    ridge(canvas, rng, 0.58, 0.06, (226, 236, 248), (206, 220, 240))
    crest = ridge(canvas, rng, 0.68, 0.05, (246, 249, 254), (208, 222, 240))
    for _ in range(2 + rng.integer(4)):
        x = rng.uniform(0.02, 0.98)
        foot = float(crest[0, int(x * canvas.size)]) + 0.02
        fir(canvas, x, foot, rng.uniform(0.05, 0.09), (64, 110, 104), (240, 246, 252))
    specks(canvas, rng, 24, 0.0, 1.0, 0.008, WHITE)


def _peaks(canvas: Canvas, rng: PortableRandom) -> None:
    pen = canvas.strip(0.26, 0.7)
    for _ in range(3):
        x, top, width = rng.uniform(0, 1), rng.uniform(0.3, 0.44), rng.uniform(0.2, 0.34)
        mountain = polygon(pen.u, pen.v, [(x, top), (x + width, 0.72), (x - width, 0.72)])
        pen.fill(mountain, (158, 176, 206))
        pen.fill(np.maximum(mountain, pen.v - (top + 0.09) - np.abs(pen.u - x) * 0.3), (246, 249, 254))


def _sunset(canvas: Canvas, rng: PortableRandom) -> None:
    top = _between(rng, (86, 58, 120), (70, 84, 142))
    middle = _between(rng, (236, 110, 92), (240, 132, 84))
    sky(canvas, (0.0, top), (0.4, middle), (0.64, (255, 208, 124)))
    x = rng.uniform(0.25, 0.75)
    sun(canvas, x, 0.57, 0.1, (255, 228, 142), 0.6)
    clouds(canvas, rng, 2 + rng.integer(2), 0.1, 0.36, mix(middle, (255, 196, 170), 0.6), 0.6)
    shore = _between(rng, (58, 40, 66), (48, 44, 74))
    ridge(canvas, rng, 0.6, 0.025, mix(shore, middle, 0.35), mix(shore, middle, 0.35))
    lake = canvas.strip(0.62, 1.0)
    lake.fill(0.635 - lake.v, lake.gradient([(0.62, mix(middle, (255, 206, 140), 0.4)), (0.95, mix(top, middle, 0.3))]))
    for step in range(6):
        pen = canvas.window(x + rng.uniform(-0.02, 0.02), 0.66 + 0.04 * step, 0.05 + 0.012 * step)
        pen.fill(box(pen.u, pen.v, 0, 0, 1.0, 0.1), (255, 232, 168), 0.5)
    ripples(canvas, rng, 10, 0.68, 0.88, (255, 206, 160))
    ridge(canvas, rng, 0.9, 0.03, mix(shore, middle, 0.15), shore)
    tufts(canvas, rng, 5, 0.93, 0.98, shore)


def _forest(canvas: Canvas, rng: PortableRandom) -> None:
    light = _between(rng, (206, 228, 178), (226, 224, 170))
    sky(canvas, (0.0, mix(light, (110, 160, 112), 0.5)), (0.5, light), (0.8, light))
    far = _between(rng, (134, 176, 128), (150, 184, 124))
    for tone, foot, scale, count in ((0.25, 0.66, 0.2, 6), (0.6, 0.7, 0.24, 4)):
        for place in range(count):
            x = (place + rng.uniform(0.1, 0.9)) / count
            leaves = mix(far, (48, 104, 60), tone * rng.uniform(0.8, 1.2))
            height = scale * rng.uniform(0.85, 1.25)
            if rng.bernoulli(0.55):
                fir(canvas, x, foot, height, leaves)
            else:
                round_tree(canvas, x, foot, height, leaves, mix((96, 70, 52), light, 0.6 - tone))
    _light_shafts(canvas, rng, (255, 250, 206), 0.12)
    ridge(canvas, rng, 0.68, 0.03, _between(rng, (122, 164, 84), (142, 166, 82)), (70, 112, 58))
    tufts(canvas, rng, 12, 0.74, 0.98, (60, 104, 54))


def _light_shafts(canvas: Canvas, rng: PortableRandom, colour: RGB, opacity: float) -> None:
    pen = canvas.whole()
    lean = rng.uniform(-0.5, 0.5)
    for _ in range(3):
        centre, width = rng.uniform(0, 1), rng.uniform(0.03, 0.07)
        shaft = np.abs(pen.u - centre - lean * pen.v) - width * (0.5 + pen.v)
        pen.glow(shaft, colour, opacity, 0.05)


def _city(canvas: Canvas, rng: PortableRandom) -> None:
    top = _between(rng, (96, 126, 186), (120, 108, 172))
    sky(canvas, (0.0, top), (0.7, _between(rng, (250, 202, 168), (246, 216, 190))))
    clouds(canvas, rng, 1 + rng.integer(2), 0.08, 0.26, (250, 226, 220), 0.6)
    wall = _between(rng, (96, 98, 140), (112, 92, 132))
    _row_of_towers(canvas, rng, 0.22, 0.46, mix(wall, (250, 202, 168), 0.5), 0.0)
    _row_of_towers(canvas, rng, 0.38, 0.6, wall, 0.75)
    street = canvas.strip(0.74, 1.0)
    street.fill(0.76 - street.v, (186, 180, 186))
    street.fill(0.8 - street.v, street.gradient([(0.8, (104, 102, 116)), (1.0, (82, 80, 96))]))
    for place in range(5):
        dash = canvas.window(0.1 + 0.2 * place, 0.9, 0.05)
        dash.fill(box(dash.u, dash.v, 0, 0, 1, 0.13), (240, 226, 180), 0.8)


def _row_of_towers(canvas: Canvas, rng: PortableRandom, high: float, low: float, wall: RGB, lit: float) -> None:
    edge = -0.02
    while edge < 1.0:
        width, top = rng.uniform(0.09, 0.17), rng.uniform(high, low)
        pen = canvas.window(edge + width / 2, top + 0.26, 0.26)
        tone = mix(wall, (60, 58, 96), rng.uniform(0, 0.35))
        half = width / 2 / 0.26
        pen.fill(np.maximum(np.abs(pen.u) - half, -1 - pen.v), tone)
        if lit:
            across, down = pen.u / 0.15, (pen.v + 1) / 0.2
            window = box(across - np.floor(across), down - np.floor(down), 0.5, 0.5, 0.26, 0.3) * 0.15
            inside = np.maximum(np.abs(pen.u) - half + 0.06, -0.92 - pen.v)
            pen.fill(np.maximum(window, inside), (255, 224, 142), lit * rng.uniform(0.5, 1.0))
        edge += width + rng.uniform(-0.01, 0.02)


def _underwater(canvas: Canvas, rng: PortableRandom) -> None:
    top = _between(rng, (88, 200, 220), (72, 180, 226))
    sky(canvas, (0.0, top), (0.9, _between(rng, (16, 78, 136), (18, 92, 128))))
    _light_shafts(canvas, rng, (220, 250, 255), 0.2)
    ridge(canvas, rng, 0.78, 0.05, (44, 110, 142), (30, 84, 120))
    ridge(canvas, rng, 0.87, 0.03, (214, 200, 152), (172, 158, 122))
    for _ in range(3 + rng.integer(3)):
        _seaweed(canvas, rng)
    for _ in range(8):
        pen = canvas.window(rng.uniform(0, 1), rng.uniform(0.05, 0.8), rng.uniform(0.008, 0.02), reach=1.6)
        bubble = circle(pen.u, pen.v, 0, 0, 0.9)
        pen.fill(bubble, WHITE, 0.15)
        pen.fill(ring(bubble, 0.3), WHITE, 0.6)


def _seaweed(canvas: Canvas, rng: PortableRandom) -> None:
    pen = canvas.window(rng.uniform(0.03, 0.97), 0.86, rng.uniform(0.07, 0.13))
    colour = _between(rng, (40, 136, 96), (78, 150, 74))
    x, y, side = 0.0, 1.0, rng.choice((-1, 1))
    for step in range(5):
        next_x, next_y = 0.16 * side, y - 0.36
        pen.fill(line(pen.u, pen.v, (x, y), (next_x, next_y), 0.12 - 0.016 * step), colour)
        x, y, side = next_x, next_y, -side


def _paper(canvas: Canvas, rng: PortableRandom) -> None:
    sheet: RGB = rng.choice(((255, 246, 222), (238, 247, 255), (255, 240, 242), (242, 252, 234)))
    sky(canvas, (0.0, sheet), (1.0, mix(sheet, (230, 208, 176), 0.25)))
    pen = canvas.whole()
    pencil = mix(sheet, (120, 160, 210), 0.4)
    ruling = rng.integer(3)
    spacing = rng.choice((0.08, 0.1))
    rows = pen.v / spacing
    lines = (np.abs(rows - np.floor(rows) - 0.5)) * spacing - 0.002
    if ruling == 0:
        pen.fill(lines + np.zeros_like(pen.u), pencil, 0.6)
    elif ruling == 1:
        columns = pen.u / spacing
        pen.fill(np.minimum(lines, np.abs(columns - np.floor(columns) - 0.5) * spacing - 0.002), pencil, 0.5)
    for _ in range(3):
        stain = canvas.window(rng.uniform(0, 1), rng.uniform(0, 1), rng.uniform(0.15, 0.3), reach=1.5)
        tint = rng.choice(((250, 190, 170), (170, 210, 240), (190, 226, 180), (246, 222, 150)))
        stain.glow(circle(stain.u, stain.v, 0, 0, 0.6), tint, 0.6, 0.6)


_PAINTERS: dict[str, Callable[[Canvas, PortableRandom], None]] = {
    "meadow": _meadow,
    "seaside": _seaside,
    "night": _night,
    "desert": _desert,
    "snow": _snow,
    "sunset": _sunset,
    "forest": _forest,
    "city": _city,
    "underwater": _underwater,
    "paper": _paper,
}

BACKGROUNDS: tuple[str, ...] = tuple(_PAINTERS)


def draw_backdrop(canvas: Canvas, background: str, rng: PortableRandom) -> None:
    """Cover the canvas with the named place; the random numbers give it its weather, hills and trees."""
    _PAINTERS[background](canvas, rng)
    wash(canvas, rng)
