"""What can be true of a generated scene: the coordinates that its picture and words about it share."""

from __future__ import annotations

from itertools import product

from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS, TEXTURES
from diptych.data.datasets.scenes.composition import SIZES

ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "centre", "right")
LARGEST_NUMBER = 4
SEVERAL = "several"
NUMBERS: tuple[str, ...] = (*(str(number) for number in range(1, LARGEST_NUMBER + 1)), SEVERAL)

# The looks by which things are told apart, and the pairs of looks whose things are counted together.
LOOKS: dict[str, tuple[str, ...]] = {
    "kind": CLASS_NAMES,
    "colour": tuple(COLOURS),
    "texture": TEXTURES,
    "size": tuple(SIZES),
    "row": ROWS,
    "column": COLUMNS,
}
PAIRED: tuple[tuple[str, str], ...] = (
    ("kind", "colour"),
    ("kind", "texture"),
    ("kind", "size"),
    ("kind", "row"),
    ("kind", "column"),
    ("colour", "texture"),
)
# How things may be counted: all of them, those of a kind, of a colour, of a kind and a colour.
COUNTED: tuple[tuple[str, ...], ...] = ((), ("kind",), ("colour",), ("kind", "colour"))
# Looks that may be those of most of what a scene shows.
PROMINENT: tuple[str, ...] = ("kind", "colour")

LENGTH = 8.0
"""The length of what a picture shows, made the same for all by one more coordinate at the end, which texts leave at 0.

No scene has as many as 64 facts. Pictures are given in units of it, so that two of them compare by the cosine, and
texts times it, so that a picture and a text compare by the share of what is asked for that is shown.
"""


def fact(*looks: str, number: str | None = None) -> str:
    """Return the name of the fact that there is such a thing, or that there are so many of them.

    >>> from diptych.encoders.scenes.facts import FACTS, fact
    >>> fact("car", "red"), fact("car", "red", number="2"), fact(number="3")
    ('a red car', '2 × red car', '3 × thing')
    >>> len(FACTS) == len(set(FACTS))
    True
    """
    thing = " ".join(reversed(looks)) or "thing"
    return f"a {thing}" if number is None else f"{number} × {thing}"


def main_fact(look: str) -> str:
    """Return the name of the fact that things of such a look fill most of the picture."""
    return f"mostly {look}"


def place_fact(background: str) -> str:
    """Return the name of the fact that a scene is at such a place."""
    return f"at: {background}"


def _values(looks: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(product(*(LOOKS[look] for look in looks)))


FACTS: tuple[str, ...] = (
    *(place_fact(background) for background in BACKGROUNDS),
    *(fact(value) for values in LOOKS.values() for value in values),
    *(fact(*values) for looks in PAIRED for values in _values(looks)),
    *(fact(*values, number=number) for looks in COUNTED for values in _values(looks) for number in NUMBERS),
    *(main_fact(value) for look in PROMINENT for value in LOOKS[look]),
)
WIDTH = len(FACTS) + 1
POSITIONS: dict[str, int] = {name: position for position, name in enumerate(FACTS)}
