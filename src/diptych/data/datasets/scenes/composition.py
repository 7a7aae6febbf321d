"""What is in a scene: which things, how they look and where they are."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.data.datasets.scenes.backdrops import BACKGROUNDS
from diptych.data.datasets.scenes.canvas import COLOURS, PortableRandom

SIZES: dict[str, float] = {"small": 0.11, "medium": 0.155, "large": 0.215}


@dataclass(frozen=True)
class SceneObject:
    """A thing with its looks and its place.

    ``x`` and ``y`` are its centre as fractions of the picture (right and down), ``extent`` half its side, ``setting``
    what it is in or on: ``air``, ``ground`` or ``water``.
    """

    kind: str
    colour: str
    size: str
    x: float
    y: float
    extent: float
    setting: str = "ground"

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The left, top, right and lower edge as fractions of the picture."""
        return self.x - self.extent, self.y - self.extent, self.x + self.extent, self.y + self.extent

    @property
    def place(self) -> str:
        """Words for where its centre is, for instance ``at the top left`` or ``in the middle``."""
        column = "left" if self.x < 0.37 else "right" if self.x > 0.63 else ""
        row = "top" if self.y < 0.37 else "bottom" if self.y > 0.63 else ""
        if row:
            return f"at the {row} {column}".rstrip()
        return f"on the {column}" if column else "in the middle"


# How often a kind is at a place, in the order of BACKGROUNDS: meadow seaside night snow city underwater.
_KINDS: dict[str, tuple[int, ...]] = {
    "ball": (8, 8, 3, 2, 3, 2),
    "boat": (0, 14, 0, 0, 0, 2),
    "car": (3, 2, 5, 4, 13, 1),
    "fish": (0, 5, 0, 0, 0, 16),
    "house": (7, 3, 8, 8, 4, 1),
    "kite": (10, 9, 3, 2, 3, 0),
    "mushroom": (14, 1, 3, 5, 0, 0),
    "rocket": (2, 2, 12, 3, 4, 0),
}
# The height of the feet of things on the ground, and of the centres of others, by place.
_GROUND: dict[str, tuple[float, float]] = {
    "meadow": (0.72, 0.97),
    "seaside": (0.85, 0.98),
    "night": (0.84, 0.98),
    "snow": (0.76, 0.97),
    "city": (0.82, 0.98),
    "underwater": (0.91, 0.99),
}
_AIR = (0.16, 0.42)
_WATER = {"seaside": (0.5, 0.64), "underwater": (0.16, 0.7)}


def compose(rng: PortableRandom) -> tuple[str, tuple[SceneObject, ...]]:
    """Return a background and its things from back to front, after the main one, which comes first."""
    label = rng.choice(tuple(_KINDS))
    background = rng.weighted(dict(zip(BACKGROUNDS, _KINDS[label], strict=True)))
    size = rng.weighted({"large": 10, "medium": 8, "small": 2})
    placed = [_place(rng, label, rng.choice(tuple(COLOURS)), size, background)]
    likely = {kind: weights[BACKGROUNDS.index(background)] for kind, weights in _KINDS.items()}
    is_herd = rng.bernoulli(0.25)
    for _ in range(rng.weighted({0: 4, 1: 7, 2: 6, 3: 3})):
        kind = label if is_herd else rng.weighted(likely)
        companion = _fit(rng, kind, size, background, placed)
        if companion is not None:
            placed.append(companion)
    return background, (placed[0], *sorted(placed[1:], key=depth))


def depth(thing: SceneObject) -> tuple[int, float]:
    """Return the painting order of a thing: the air first, then by how near its feet are."""
    return int(thing.setting != "air"), thing.y + thing.extent


def _place(rng: PortableRandom, kind: str, colour: str, size: str, background: str) -> SceneObject:
    extent = SIZES[size] * rng.uniform(0.93, 1.07)
    x = rng.uniform(extent + 0.01, 0.99 - extent)
    if kind in ("kite", "rocket"):
        setting, y = "air", rng.uniform(*_AIR)
    elif kind == "fish" or (kind == "boat" and background == "seaside"):
        setting, y = "water", rng.uniform(*_WATER[background])
    else:
        setting, y = "ground", rng.uniform(*_GROUND[background]) - extent
    y = min(max(y, extent + 0.01), 0.99 - extent)
    return SceneObject(kind, colour, size, x, y, extent, setting)


def _fit(rng: PortableRandom, kind: str, size: str, background: str, placed: list[SceneObject]) -> SceneObject | None:
    """Return a companion no larger than the main thing that hides little of the others, or None if there is no room."""
    names = list(SIZES)
    size = rng.choice(names[: names.index(size) + 1][-2:])
    colour = rng.choice(tuple(COLOURS))
    for _ in range(12):
        thing = _place(rng, kind, colour, size, background)
        if all(overlap(thing, other) <= 0.2 for other in placed):
            return thing
    return None


def overlap(first: SceneObject, second: SceneObject) -> float:
    """Return the shared area of two boxes as a fraction of the smaller box."""
    width = min(first.box[2], second.box[2]) - max(first.box[0], second.box[0])
    height = min(first.box[3], second.box[3]) - max(first.box[1], second.box[1])
    side = 2 * min(first.extent, second.extent)
    return max(width, 0.0) * max(height, 0.0) / (side * side)
