from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.datasets import scenes
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS
from diptych.data.datasets.scenes.backdrops import draw_backdrop
from diptych.data.datasets.scenes.canvas import (
    Canvas,
    Field,
    Pen,
    PortableRandom,
    box,
    circle,
    curve,
    ellipse,
    line,
    polygon,
)
from diptych.data.datasets.scenes.things import draw_thing

EXACT_OPERATIONS = {
    "np.abs",
    "np.add",
    "np.arange",
    "np.array",
    "np.asarray",
    "np.ascontiguousarray",
    "np.dtype",
    "np.empty",
    "np.float32",
    "np.floating",
    "np.floor",
    "np.int64",
    "np.maximum",
    "np.minimum",
    "np.multiply",
    "np.ndarray",
    "np.ndim",
    "np.ones_like",
    "np.sqrt",
    "np.uint8",
    "np.zeros",
    "np.zeros_like",
}
PAINTING_MODULES = ("backdrops", "canvas", "scene", "things")


def painted_area(pen: Pen, distance: Field) -> float:
    pen.fill(distance, (1.0, 1.0, 1.0))
    return float(pen.planes[0].astype(np.float64).sum()) / pen.pixels**2


@pytest.mark.parametrize("module", PAINTING_MODULES)
def test_painting_uses_only_operations_that_ieee_fixes_to_the_last_bit(module: str) -> None:
    source = (Path(scenes.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    dotted = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    assert {name for name in dotted if re.fullmatch(r"np\.\w+", name)} <= EXACT_OPERATIONS
    assert {name for name in dotted if re.fullmatch(r"math\.\w+", name)} <= {"math.sqrt", "math.floor", "math.ceil"}
    assert not {name.rpartition(".")[2] for name in dotted} & {"sum", "mean", "dot", "std", "prod", "cumsum"}
    operators = {type(node.op) for node in nodes if isinstance(node, ast.BinOp)}
    assert not operators & {ast.Pow, ast.MatMult, ast.Mod}


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        (lambda u, v: circle(u, v, 0.1, -0.2, 0.6), math.pi * 0.36),
        (lambda u, v: ellipse(u, v, 0.1, 0.1, 0.8, 0.4), math.pi * 0.32),
        (lambda u, v: box(u, v, 0, 0.2, 0.5, 0.3), 0.6),
        (lambda u, v: line(u, v, (-0.3, -0.4), (0.3, 0.4), 0.1), 1.0 * 0.2 + math.pi * 0.01),
        (lambda u, v: polygon(u, v, [(0, -0.8), (0.7, 0.6), (-0.7, 0.6)]), 0.98),
    ],
)
def test_painted_area_is_the_area_of_the_shape(shape, area: float) -> None:
    pen = Canvas(96).window(0.5, 0.5, 0.4)
    assert painted_area(pen, shape(pen.u, pen.v)) == pytest.approx(area, rel=0.01)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_an_ellipse_has_no_hole(x: float, y: float) -> None:
    u = np.array([0, 1e-7, 1e-4, 1e-2], dtype=np.float32) + np.float32(x)
    assert (ellipse(u, np.full_like(u, y), x, y, 0.3, 0.2) < -0.1).all()


@given(st.tuples(*[st.floats(-1, 1)] * 4), st.floats(0.05, 0.3))
def test_distance_to_a_stroke_is_that_to_its_nearest_point(ends: tuple[float, ...], radius: float) -> None:
    start, end = ends[:2], ends[2:]
    if math.dist(start, end) < 0.05:
        return
    share = np.linspace(0, 1, 2001)
    points = np.array([[0.0, 0.0], [1.0, -1.0], [-0.5, 0.9]])
    on_line = np.array(start) + share[:, None] * (np.array(end) - np.array(start))
    nearest = np.sqrt(((points[:, None] - on_line) ** 2).sum(axis=2)).min(axis=1) - radius
    u, v = points.astype(np.float32).T
    np.testing.assert_allclose(line(u, v, start, end, radius), nearest, atol=2e-3)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=9))
def test_a_ridge_is_smooth_and_stays_between_its_knots(knots: list[float]) -> None:
    x = np.linspace(0, 1, 801, dtype=np.float32)
    heights = curve(x, knots)
    assert heights.min() >= min(knots) - 1e-5
    assert heights.max() <= max(knots) + 1e-5
    assert np.abs(np.diff(heights)).max() <= 1.5 * (max(knots) - min(knots)) * (len(knots) - 1) / 800 + 1e-5


def test_light_falls_from_above() -> None:
    pen = Canvas(64).window(0.5, 0.5, 0.4)
    shaded = pen.shaded((100.0, 100.0, 100.0))
    assert (np.diff(shaded[0], axis=0) < 0).all()


@pytest.mark.parametrize("kind", CLASS_NAMES)
def test_a_thing_shows_its_colour(kind: str) -> None:
    def draw(colour: str) -> np.ndarray:
        canvas = Canvas(64)
        draw_thing(canvas.window(0.5, 0.5, 0.42), kind, colour)
        assert canvas.planes.dtype == np.float32
        return canvas.picture().astype(int)

    red = draw("red")
    assert 0.15 < (red.sum(axis=2) > 0).mean() < 0.8
    for colour in COLOURS:
        assert colour == "red" or (np.abs(draw(colour) - red).sum(axis=2) > 30).mean() > 0.05


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_backdrop_varies_but_stays_recognisable(background: str) -> None:
    def draw(name: str, number: int) -> np.ndarray:
        canvas = Canvas(32)
        draw_backdrop(canvas, name, PortableRandom("test", number))
        assert canvas.planes.dtype == np.float32
        assert canvas.planes.min() > -20
        return canvas.picture().astype(float)

    own = [draw(background, number) for number in range(6)]
    assert len({picture.tobytes() for picture in own}) == 6
    centre = np.mean(own, axis=0)
    spread = np.mean([np.abs(picture - centre).mean() for picture in own])
    others = [np.abs(draw(other, 0) - centre).mean() for other in BACKGROUNDS if other != background]
    assert spread < min(others)


def test_dice_are_fair_and_keep_to_their_bounds() -> None:
    dice = PortableRandom("fair")
    rolls = [dice.weighted({"a": 1, "b": 0, "c": 3}) for _ in range(4000)]
    assert "b" not in rolls
    assert rolls.count("c") / 4000 == pytest.approx(0.75, abs=0.03)
    assert all(2.0 <= dice.uniform(2.0, 3.0) < 3.0 for _ in range(100))
    assert {dice.integer(3) for _ in range(100)} == {0, 1, 2}
    assert sorted(dice.shuffled(range(20))) == list(range(20))


def test_dice_streams_differ_by_every_part_of_their_name() -> None:
    names = [("a", 1, 2), ("a", 12), ("a", 2, 1), ("b", 1, 2)]
    assert len({PortableRandom(*name).uniform(0, 1) for name in names}) == len(names)
