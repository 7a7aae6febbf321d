"""What is in a scene: which things, how they look and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from diptych.data.datasets.scenes.backdrops import BACKGROUNDS
from diptych.data.datasets.scenes.canvas import COLOURS, PortableRandom

SIZES: dict[str, float] = {"small": 0.11, "medium": 0.155, "large": 0.215}

# Cosine and sine of the tilts in use, written out because library sines differ in the last bit between machines.
TILTS: dict[int, tuple[float, float]] = {
    -24: (0.91355, -0.40674),
    -12: (0.97815, -0.20791),
    0: (1.0, 0.0),
    12: (0.97815, 0.20791),
    24: (0.91355, 0.40674),
}
_FLYING = ("balloon", "butterfly", "kite", "rocket")
_SWIMMING = ("boat", "fish")
_TILTING = (*_FLYING, "fish", "ball", "boat")


@dataclass(frozen=True)
class SceneObject:
    """A thing with its looks and its place.

    ``x`` and ``y`` are its centre as fractions of the picture (right and down), ``extent`` half its side,
    ``tilt`` degrees clockwise, ``setting`` what it is in or on: ``air``, ``ground``, ``water`` or ``page``.

    >>> from diptych.data.datasets.scenes import SceneObject
    >>> ball = SceneObject("ball", "red", "small", "striped", x=0.2, y=0.8, extent=0.11)
    >>> ball.column, ball.row, ball.place
    ('left', 'bottom', 'at the bottom left')
    """

    kind: str
    colour: str
    size: str
    texture: str
    x: float
    y: float
    extent: float
    tilt: int = 0
    flipped: bool = False
    setting: str = "ground"

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The left, top, right and lower edge as fractions of the picture."""
        return self.x - self.extent, self.y - self.extent, self.x + self.extent, self.y + self.extent

    @property
    def column(self) -> str:
        """Which third of the picture the centre is in: ``left``, ``centre`` or ``right``."""
        return "left" if self.x < 0.37 else "right" if self.x > 0.63 else "centre"

    @property
    def row(self) -> str:
        """Which part of the picture the centre is in: ``top``, ``middle`` or ``bottom``."""
        return "top" if self.y < 0.37 else "bottom" if self.y > 0.63 else "middle"

    @property
    def place(self) -> str:
        """Words for where it is, for instance ``at the top left`` or ``in the middle``."""
        if self.row == "middle":
            return "in the middle" if self.column == "centre" else f"on the {self.column}"
        return f"at the {self.row}" if self.column == "centre" else f"at the {self.row} {self.column}"


class _Kind(NamedTuple):
    weight: int
    backgrounds: tuple[int, ...]
    colours: tuple[str, ...]
    texture: str


# How often a kind is the main thing, its weights in the order of BACKGROUNDS (meadow seaside night desert snow sunset
# forest city underwater paper), and its typical looks.
_KINDS: dict[str, _Kind] = {
    "ball": _Kind(9, (8, 8, 1, 2, 2, 2, 2, 3, 2, 4), ("red", "blue", "yellow"), "checked"),
    "balloon": _Kind(9, (8, 3, 3, 5, 3, 7, 1, 4, 0, 2), ("red", "orange", "turquoise"), "striped"),
    "boat": _Kind(9, (0, 14, 0, 0, 0, 9, 0, 0, 2, 3), ("white", "blue", "red"), "striped"),
    "butterfly": _Kind(8, (11, 1, 1, 1, 0, 3, 9, 1, 0, 4), ("orange", "blue", "purple"), "dotted"),
    "car": _Kind(8, (3, 2, 3, 6, 4, 1, 2, 13, 1, 2), ("red", "blue", "green"), "checked"),
    "fish": _Kind(9, (0, 5, 0, 0, 0, 2, 0, 0, 16, 4), ("orange", "yellow", "turquoise"), "striped"),
    "flower": _Kind(9, (12, 1, 1, 2, 1, 2, 8, 1, 1, 4), ("pink", "purple", "yellow"), "dotted"),
    "house": _Kind(10, (7, 3, 5, 3, 8, 2, 4, 4, 1, 2), ("brown", "white", "pink"), "checked"),
    "kite": _Kind(7, (10, 9, 0, 3, 2, 5, 1, 2, 0, 3), ("yellow", "green", "red"), "checked"),
    "mushroom": _Kind(7, (6, 0, 2, 1, 1, 1, 15, 0, 1, 3), ("red", "brown", "orange"), "dotted"),
    "rocket": _Kind(7, (1, 1, 15, 6, 2, 2, 1, 3, 0, 4), ("white", "red", "turquoise"), "striped"),
    "umbrella": _Kind(8, (3, 12, 1, 2, 3, 2, 1, 8, 1, 3), ("purple", "green", "pink"), "dotted"),
}

# For things in the air and in water the range of their centres, for things on the ground that of their feet; boats and
# fish keep to the surface where there is one.
_HEIGHTS: dict[str, dict[str, tuple[float, float]]] = {
    "meadow": {"air": (0.16, 0.46), "ground": (0.72, 0.97)},
    "seaside": {"air": (0.16, 0.38), "ground": (0.85, 0.98), "surface": (0.56, 0.74)},
    "night": {"air": (0.16, 0.56), "ground": (0.84, 0.98)},
    "desert": {"air": (0.16, 0.46), "ground": (0.76, 0.97)},
    "snow": {"air": (0.16, 0.46), "ground": (0.76, 0.97)},
    "sunset": {"air": (0.16, 0.48), "ground": (0.93, 0.99), "surface": (0.7, 0.86)},
    "forest": {"air": (0.2, 0.56), "ground": (0.76, 0.97)},
    "city": {"air": (0.16, 0.44), "ground": (0.82, 0.98)},
    "underwater": {"air": (0.16, 0.62), "ground": (0.91, 0.99)},
    "paper": {"air": (0.16, 0.84)},
}


def compose(rng: PortableRandom) -> tuple[str, tuple[SceneObject, ...]]:
    """Return a background and its things from back to front, after the main one, which comes first."""
    label = rng.weighted({kind: declared.weight for kind, declared in _KINDS.items()})
    background = rng.weighted(dict(zip(BACKGROUNDS, _KINDS[label].backgrounds, strict=True)))
    size = rng.weighted({"large": 10, "medium": 8, "small": 2})
    placed = [_place(rng, _looks(rng, label), size, background)]
    for kind in _companions(rng, label, background):
        companion = _fit(rng, kind, size, background, placed)
        if companion is not None:
            placed.append(companion)
    return background, (placed[0], *sorted(placed[1:], key=depth))


def depth(thing: SceneObject) -> tuple[int, float]:
    """Return the painting order of a thing: the air first, then by how near its feet are."""
    return int(thing.setting != "air"), thing.y + thing.extent


def _companions(rng: PortableRandom, label: str, background: str) -> list[str]:
    count = rng.weighted({0: 4, 1: 7, 2: 6, 3: 3})
    column = BACKGROUNDS.index(background)
    likely = {kind: declared.backgrounds[column] for kind, declared in _KINDS.items()}
    herd = rng.bernoulli(0.25)
    return [label if herd and rng.bernoulli(0.8) else rng.weighted(likely) for _ in range(count)]


def _looks(rng: PortableRandom, kind: str) -> tuple[str, str, str]:
    colours = {name: 6 if name in _KINDS[kind].colours else 2 for name in COLOURS}
    if kind == "flower":
        colours["green"] = 0
    textures = {"plain": 10, "striped": 3, "dotted": 3, "checked": 2}
    textures[_KINDS[kind].texture] += 4
    return kind, rng.weighted(colours), rng.weighted(textures)


def _setting(kind: str, background: str) -> str:
    if background == "paper":
        return "page"
    if kind in _FLYING:
        return "air"
    if kind in _SWIMMING and ("surface" in _HEIGHTS[background] or kind == "fish"):
        return "water"
    return "ground"


def _place(rng: PortableRandom, looks: tuple[str, str, str], size: str, background: str) -> SceneObject:
    kind, colour, texture = looks
    extent = SIZES[size] * rng.uniform(0.93, 1.07)
    setting = _setting(kind, background)
    x = rng.uniform(extent + 0.01, 0.99 - extent)
    heights = _HEIGHTS[background]
    if setting == "ground":
        y = rng.uniform(*heights["ground"]) - extent
    elif setting == "water" and "surface" in heights:
        y = rng.uniform(*heights["surface"]) - extent * (0.9 if kind == "boat" else 0.5)
    else:
        y = rng.uniform(*heights["air"])
    y = min(max(y, extent + 0.01), 0.99 - extent)
    tilt = rng.choice((-24, -12, 0, 12, 24) if kind in _FLYING else (-12, 0, 0, 12)) if kind in _TILTING else 0
    return SceneObject(kind, colour, size, texture, x, y, extent, tilt, rng.bernoulli(0.5), setting)


def _fit(rng: PortableRandom, kind: str, size: str, background: str, placed: list[SceneObject]) -> SceneObject | None:
    """Return a companion no larger than the main thing that hides little of the others, or None if there is no room."""
    names = list(SIZES)
    size = rng.choice(names[: names.index(size) + 1][-2:])
    looks = _looks(rng, kind)
    allowed = 0.4 if rng.bernoulli(0.35) else 0.08
    for _ in range(12):
        thing = _place(rng, looks, size, background)
        if all(overlap(thing, other) <= allowed for other in placed):
            return thing
    return None


def overlap(first: SceneObject, second: SceneObject) -> float:
    """Return the shared area of two boxes as a fraction of the smaller box."""
    width = min(first.box[2], second.box[2]) - max(first.box[0], second.box[0])
    height = min(first.box[3], second.box[3]) - max(first.box[1], second.box[1])
    side = 2 * min(first.extent, second.extent)
    return max(width, 0.0) * max(height, 0.0) / (side * side)
