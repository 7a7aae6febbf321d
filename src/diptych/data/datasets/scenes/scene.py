"""A scene and how it becomes a picture."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from diptych.data.datasets.scenes.backdrops import draw_backdrop
from diptych.data.datasets.scenes.canvas import Canvas
from diptych.data.datasets.scenes.captions import write_captions
from diptych.data.datasets.scenes.composition import compose, depth
from diptych.data.datasets.scenes.dice import Dice
from diptych.data.datasets.scenes.palette import INK
from diptych.data.datasets.scenes.scene_object import TILTS, SceneObject
from diptych.data.datasets.scenes.shapes import ellipse
from diptych.data.datasets.scenes.things import draw_thing
from diptych.errors import InvalidInputError

SMALLEST_PICTURE = 32


@dataclass(frozen=True)
class Scene:
    """A little world: a background, one to four things in it, and five captions that are true of it.

    ``objects`` begins with the main thing, whose kind is the ``label``; ``kinds`` is the multi-label set, sorted.
    A scene is a description; pixels are made by :meth:`render`, at any size, and are the same on every machine.

    >>> from diptych.data.datasets.scenes import make_scene
    >>> scene = make_scene(0)
    >>> scene.label == scene.objects[0].kind
    True
    >>> scene.render(64).shape
    (64, 64, 3)
    """

    index: int
    label: str
    kinds: tuple[str, ...]
    background: str
    objects: tuple[SceneObject, ...]
    captions: tuple[str, ...] = field(repr=False)
    seed: int = 0

    def render(self, size: int = 128) -> NDArray[np.uint8]:
        """Return the picture as (size, size, 3) RGB bytes."""
        if size < SMALLEST_PICTURE:
            raise InvalidInputError(f"size must be at least {SMALLEST_PICTURE} pixels, got {size}")
        canvas = Canvas(size)
        draw_backdrop(canvas, self.background, Dice("backdrop", self.seed, self.index))
        for thing in sorted(self.objects, key=depth):
            _draw(canvas, thing)
        return canvas.picture()


def _draw(canvas: Canvas, thing: SceneObject) -> None:
    if thing.setting == "ground" or (thing.setting, thing.kind) == ("water", "boat"):
        _shadow(canvas, thing)
    pen = canvas.window(thing.x, thing.y, thing.extent, reach=1.2, direction=TILTS[thing.tilt], flipped=thing.flipped)
    draw_thing(pen, thing.kind, thing.colour, thing.texture)


def _shadow(canvas: Canvas, thing: SceneObject) -> None:
    pen = canvas.window(thing.x, thing.y + thing.extent * 0.98, thing.extent, reach=1.3, reach_down=0.4)
    pen.glow(ellipse(pen.u, pen.v, 0.08, 0, 0.7, 0.08), INK, 0.35, 0.25)


def make_scene(index: int, seed: int = 0) -> Scene:
    """Return scene number ``index`` of the data set with the given seed.

    Every scene is drawn from its own random stream, so it is the same whatever else is made, and in any order.

    >>> from diptych.data.datasets.scenes import make_scene
    >>> make_scene(5) == make_scene(5)
    True
    >>> len(set(make_scene(5).captions))
    5
    """
    if index < 0:
        raise InvalidInputError(f"index must be 0 or more, got {index}")
    background, objects = compose(Dice("scene", seed, index))
    captions = write_captions(background, objects, Dice("captions", seed, index))
    kinds = tuple(sorted({thing.kind for thing in objects}))
    return Scene(index, objects[0].kind, kinds, background, objects, captions, seed)
