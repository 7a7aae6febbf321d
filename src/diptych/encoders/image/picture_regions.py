"""Parts of pictures: a grid of overlapping regions at two scales, in which small things are large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from diptych.encoders.image.picture_decoding import Picture

# A share of the side, and where such regions begin: they overlap by more than a thing that is small in them.
_GRIDS = ((0.6, (0.0, 0.4)), (0.4, (0.0, 0.3, 0.6)))
# The smallest regions still have the pixels that networks take.
_SHORTEST_SIDE = 800


@dataclass(frozen=True)
class PictureRegion:
    """A part of a picture; the sides are shares of the width and the height of the upright picture."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def place(self) -> str:
        """Where it is, in words.

        >>> PictureRegion(0.0, 0.3, 0.4, 0.7).place, PictureRegion(0.4, 0.4, 1.0, 1.0).place
        ('middle left', 'lower right')
        """
        down = _third(self.top + self.bottom, "upper", "middle", "lower")
        across = _third(self.left + self.right, "left", "middle", "right")
        return down if down == across else f"{down} {across}"


def _third(ends: float, *names: str) -> str:
    # Half of the ends is the middle.
    return names[0] if ends < 0.9 else names[1] if ends <= 1.1 else names[2]


REGIONS = tuple(
    PictureRegion(left, top, round(left + side, 4), round(top + side, 4))
    for side, starts in _GRIDS
    for top in starts
    for left in starts
)
"""The regions of every picture, in the order in which their points are stored."""


def read_regions(picture: Picture) -> list[NDArray[np.uint8]]:
    """Return the pixels of every region of a picture.

    >>> import numpy as np
    >>> [part.shape[:2] for part in read_regions(np.zeros((10, 20, 3), dtype=np.uint8))][::4]
    [(6, 12), (4, 8), (4, 8), (4, 8)]
    """
    # Collections know this module for its boxes; who only asks for these waits for no Pillow.
    from diptych.encoders.image.picture_decoding import read_picture

    pixels = read_picture(picture, shortest_side=_SHORTEST_SIDE)
    height, width = pixels.shape[:2]
    return [
        pixels[_pixels(region.top, region.bottom, height), _pixels(region.left, region.right, width)]
        for region in REGIONS
    ]


def _pixels(start: float, end: float, count: int) -> slice:
    first = min(round(start * count), count - 1)
    return slice(first, max(first + 1, round(end * count)))
