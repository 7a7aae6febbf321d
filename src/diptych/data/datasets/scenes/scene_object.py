"""One thing in a scene."""

from __future__ import annotations

from dataclasses import dataclass

SIZES: dict[str, float] = {"small": 0.11, "medium": 0.155, "large": 0.215}

# Cosine and sine of the tilts in use, written out because library sines differ in the last bit between machines.
TILTS: dict[int, tuple[float, float]] = {
    -24: (0.91355, -0.40674),
    -12: (0.97815, -0.20791),
    0: (1.0, 0.0),
    12: (0.97815, 0.20791),
    24: (0.91355, 0.40674),
}


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
