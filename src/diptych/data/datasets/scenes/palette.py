"""Named colours and how they mix."""

from __future__ import annotations

RGB = tuple[float, float, float]

COLOURS: dict[str, RGB] = {
    "red": (214, 48, 49),
    "orange": (240, 132, 36),
    "yellow": (248, 208, 58),
    "green": (76, 165, 80),
    "turquoise": (56, 190, 184),
    "blue": (52, 108, 205),
    "purple": (134, 76, 176),
    "pink": (244, 132, 176),
    "brown": (140, 90, 56),
    "white": (246, 244, 238),
}

WHITE: RGB = (255, 255, 255)
INK: RGB = (46, 38, 50)

_PATTERN_TINT: dict[str, RGB] = {
    "white": (158, 170, 196),
    "yellow": (255, 248, 222),
    "pink": (255, 238, 244),
}


def mix(first: RGB, second: RGB, share: float) -> RGB:
    """Return the colour ``share`` of the way from the first to the second."""
    return (
        first[0] + (second[0] - first[0]) * share,
        first[1] + (second[1] - first[1]) * share,
        first[2] + (second[2] - first[2]) * share,
    )


def pattern_tint(colour: str) -> RGB:
    """Return the second colour of stripes, dots and checks on things of the named colour."""
    return _PATTERN_TINT.get(colour) or mix(COLOURS[colour], WHITE, 0.72)


def outline(colour: RGB) -> RGB:
    """Return the dark line colour that goes with a body colour."""
    return mix((colour[0] * 0.42, colour[1] * 0.42, colour[2] * 0.42), INK, 0.35)
