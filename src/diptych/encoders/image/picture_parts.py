"""Parts of pictures: overlapping regions, in which small things are large, and the words that stand in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from diptych.errors import import_package

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


# Small letters in large pictures need these many pixels; more detail costs time and finds nothing else.
_SHORTEST_SIDE_TO_READ = 1000
# A single letter is most often the edge of a wheel or a fence.
_LETTER = re.compile(r"[^\W_]")
_SETTINGS: dict[str, Any] = {
    "Global.log_level": "error",
    "Global.return_word_box": True,
    # One thread: reading goes on beside everything else, and whoever wants more starts more readers.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "Det.limit_type": "max",
    "Det.limit_side_len": 960,
}


@dataclass(frozen=True)
class PictureWord:
    """A word that stands in a picture."""

    text: str
    """The word as it was read."""
    corners: tuple[tuple[float, float], ...]
    """Its box: (x, y) from the top left of the word clockwise, as shares of the width and height of the picture."""


@dataclass(frozen=True)
class PictureText:
    """The text in a picture."""

    text: str = ""
    """Line by line; empty where there is none."""
    words: tuple[PictureWord, ...] = ()
    """The words with their boxes; where words are written without spaces, each character has its box."""


class PictureTextReader:
    """Finds and reads the text in pictures.

    >>> import numpy as np
    >>> from diptych.encoders.image.picture_parts import PictureTextReader
    >>> PictureTextReader().read(np.zeros((64, 64, 3), dtype=np.uint8))
    PictureText(text='', words=())
    """

    @cached_property
    def _engine(self) -> Any:
        rapidocr = import_package("rapidocr", "reading the text in pictures", "'diptych[ocr]'")
        return rapidocr.RapidOCR(params=_SETTINGS)

    def prepare(self) -> None:
        """Load the networks, so that a missing package is an error before the first picture."""
        assert self._engine is not None

    def read(self, picture: Picture) -> PictureText:
        """Return the text of a picture."""
        # Collections know this module for its words; who only asks for these waits for no arrays and no Pillow.
        import numpy as np

        from diptych.encoders.image.picture_decoding import read_picture

        pixels = read_picture(picture, shortest_side=_SHORTEST_SIDE_TO_READ)
        # The networks know pictures as OpenCV has them, blue first.
        found = self._engine(np.ascontiguousarray(pixels[:, :, ::-1]))
        texts = [unicodedata.normalize("NFKC", text) for text in found.txts or ()]
        worded = found.word_results or ()
        if len(worded) != len(texts):
            # Without words that were told apart, a line is one box; without text, there is nothing.
            worded = [((text, 1.0, box),) for text, box in zip(texts, found.boxes, strict=True)] if texts else []
        lines = [(text, line) for text, line in zip(texts, worded, strict=True) if len(_LETTER.findall(text)) > 1]
        words = (
            PictureWord(unicodedata.normalize("NFKC", word), _shares(box, pixels))
            for _, line in lines
            for word, _, box in line
            if _LETTER.search(word)
        )
        return PictureText("\n".join(text for text, _ in lines), tuple(words))


def _shares(box: Sequence[Sequence[float]], pixels: NDArray[np.uint8]) -> tuple[tuple[float, float], ...]:
    height, width = pixels.shape[:2]
    return tuple((round(min(1.0, max(0.0, x / width)), 4), round(min(1.0, max(0.0, y / height)), 4)) for x, y in box)
