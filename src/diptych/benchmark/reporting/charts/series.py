"""What tells series apart: a colour, a shape and a stroke, so that none of them is needed alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

# Each has its colour in the style sheet, for light and dark.
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")
MOST_SERIES = len(SHAPES)


def mark(number: int, x: float, y: float, size: float = 4.0) -> str:
    """Draw the mark of a series around a point."""
    shape = SHAPES[number % MOST_SERIES]
    style = f'class="mark s{number % MOST_SERIES}"'
    if shape in ("circle", "ring"):
        hollow = ' fill-opacity="0"' if shape == "ring" else ""
        return f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"{hollow}/>'
    return f'<path {style} d="{_outline(shape, x, y, size)}"/>'


def legend(names: Sequence[str], chance: bool = False) -> str:
    """Return a list of the series, to stand below charts that share them."""
    entries = [
        f'<li><svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">'
        f'<line class="line s{number}" x1="1" y1="6" x2="27" y2="6"/>{mark(number, 14, 6)}</svg>{escape(name)}</li>'
        for number, name in enumerate(names)
    ]
    if chance:
        entries.append(
            '<li><svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">'
            '<line class="line chance" x1="1" y1="6" x2="27" y2="6"/></svg>chance</li>'
        )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _outline(shape: str, x: float, y: float, size: float) -> str:
    corners = {
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "triangle": ((0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
        "diamond": ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)),
        "cross": (
            *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
            *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
        ),
    }[shape]
    return "M" + "L".join(f"{x + right * size:.1f} {y + down * size:.1f}" for right, down in corners) + "Z"
