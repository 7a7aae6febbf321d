"""What pictures and texts go through before a joint model sees them, because its training did so."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.arrays import FloatArray
from diptych.errors import ModelFileError

Clean = Callable[[str], str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TERMINAL_COLOUR = re.compile("\x1b\\[[0-9;]*[a-zA-Z]")
_LINE_BREAKS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_LIGATURES = "ĲĳŉǄǅǆǇǈǉǊǋǌǱǲǳﬀﬁﬂﬃﬄﬅﬆ"
_CURLED = {"'": "\u02bc\u2018\u2019\u201a\u201b", '"': "\u201c\u201d\u201e\u201f"}
_UNWANTED = (*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, *range(0x206A, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFD))


def _plain_forms() -> dict[int, str]:
    """Return what takes the place of letters that are one sign by accident, of odd widths, quotes and controls."""
    forms = dict.fromkeys(_UNWANTED, "")
    # U+FF01 to U+FFEF are the letters of East Asian grids, half or twice as wide as their plain forms.
    forms |= {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFF0)}
    forms[0x3000] = " "
    for sign in _LIGATURES:
        _, *parts = unicodedata.decomposition(sign).split()
        forms[ord(sign)] = "".join(chr(int(part, 16)) for part in parts)
    for plain, curled in _CURLED.items():
        forms |= {ord(sign): plain for sign in curled}
    return forms


_PLAIN_FORMS = _plain_forms()


def plain_text(text: str) -> str:
    """Return a text with HTML's entities as characters and with plain quotes, letters and spaces.

    OpenCLIP has this done by the library ftfy, whose other work, mending text that was decoded in the wrong encoding
    ("schÃ¶n" for "schön"), is not done here.

    >>> plain_text("Tom &amp;amp; Jerry’s “ﬁrst” ＢＯＡＴ ")
    'Tom & Jerry\\'s "first" BOAT'
    """
    # Text with a < may be HTML itself, and its entities are then meant; they become characters in the end only.
    before, literal = None, "<" in text
    while text != before:
        before = text
        unescaped = text if literal else html.unescape(text)
        coloured = _LINE_BREAKS.sub("\n", _TERMINAL_COLOUR.sub("", unescaped))
        text = unicodedata.normalize("NFC", coloured.translate(_PLAIN_FORMS))
    return html.unescape(html.unescape(text)).strip()


def single_spaced(text: str) -> str:
    """Return a text with one space wherever it has white space, and none at its ends."""
    return " ".join(text.split())


def without_punctuation(text: str) -> str:
    """Return the words of a text in small letters, without ASCII's punctuation, as SigLIP was trained.

    >>> without_punctuation("A cat,  a DOG!")
    'a cat a dog'
    """
    return single_spaced(text.lower().translate(_NO_PUNCTUATION))


def _open_clip_canonical(text: str) -> str:
    return without_punctuation(plain_text(text).replace("_", " "))


def _open_clip_spaced(text: str) -> str:
    return single_spaced(plain_text(text))


def _open_clip_lower(text: str) -> str:
    return _open_clip_spaced(text).lower()


OPEN_CLIP_CLEANING: dict[str, Clean] = {
    "canonicalize": _open_clip_canonical,
    "lower": _open_clip_lower,
    "whitespace": _open_clip_spaced,
}
"""The ways of cleaning that a configuration of OpenCLIP may name."""

_BICUBIC = int(Image.Resampling.BICUBIC)
# Pictures are read at full size up to twice this many times what the network sees, which no camera reaches; larger
# ones may be averaged first: each pixel that the network sees is a mean over a thousand.
_DETAIL = 16


@dataclass(frozen=True)
class PicturePreparation:
    """Make a picture RGB, resize it, crop it in the middle, scale and normalise, as its model's configuration says.

    Transformers and OpenCLIP differ in two things. Transformers makes the picture RGB first; OpenCLIP resizes it as it
    is stored, which shows where it is transparent, CMYK or has a palette. And where the crop cannot be in the very
    middle, Transformers goes to the pixel before and OpenCLIP to the even one. Both forget transparency: what shows is
    the colour that the file has there.
    """

    size: tuple[int, int] | int | None  # (height, width), or the shortest side, which keeps the proportions
    crop: tuple[int, int] | None = None  # (height, width) cut from the middle, black beyond the picture
    resample: int = _BICUBIC
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    deviation: tuple[float, ...] = (1.0, 1.0, 1.0)
    like_open_clip: bool = False

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PicturePreparation:
        """Read a ``preprocessor_config.json``; steps that it switches off are left out."""
        try:
            crop = _pair(config["crop_size"]) if config.get("do_center_crop", "crop_size" in config) else None
            normalise = config.get("do_normalize", True)
            return cls(
                size=_size(config["size"], proportional=crop is not None) if config.get("do_resize", True) else None,
                crop=crop,
                resample=int(config.get("resample", _BICUBIC)),
                scale=float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 1.0,
                mean=tuple(config["image_mean"]) if normalise else cls.mean,
                deviation=tuple(config["image_std"]) if normalise else cls.deviation,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"the preprocessor configuration cannot be understood ({error!r}); it needs size, image_mean and "
                "image_std, and crop_size where the picture is cropped: copy preprocessor_config.json again"
            ) from error

    @property
    def output_size(self) -> tuple[int, int] | None:
        """The (height, width) that every picture gets, or None when that depends on the picture."""
        return self.crop or (self.size if isinstance(self.size, tuple) else None)

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        return _DETAIL * max(*_sides(self.size), *_sides(self.crop))

    @property
    def in_words(self) -> str:
        """What is done to a picture, for a reader.

        >>> PicturePreparation(size=224, crop=(224, 224)).in_words
        'shortest side 224 pixels, bicubic, middle 224 × 224'
        """
        filter_name = Image.Resampling(self.resample).name.lower()
        steps = []
        if self.size is not None:
            sides = f"{self.size[1]} × {self.size[0]}" if isinstance(self.size, tuple) else f"shortest side {self.size}"
            steps = [f"{sides} pixels", filter_name]
        if self.crop is not None:
            steps.append(f"middle {self.crop[1]} × {self.crop[0]}")
        return ", ".join(steps) or "as it is"

    def apply(self, picture: Image.Image | NDArray[np.uint8]) -> FloatArray:
        """Return a picture, or its RGB bytes (height, width, 3), as float32 (3, height, width)."""
        image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
        if not self.like_open_clip and image.mode != "RGB":
            image = image.convert("RGB")
        if self.size is not None:
            image = image.resize(self._target(image.size), self.resample)
        if self.crop is not None:
            height, width = self.crop
            left, top = self._offset(image.width - width), self._offset(image.height - height)
            image = image.crop((left, top, left + width, top + height))
        pixels = np.asarray(image.convert("RGB"))
        # A byte of a colour always becomes the same number, which is looked up sooner than it is computed.
        values = np.arange(256, dtype=np.float32)[:, None] * np.float32(self.scale)
        table = (values - np.array(self.mean, dtype=np.float32)) / np.array(self.deviation, dtype=np.float32)
        normalised = np.empty((3, *pixels.shape[:2]), dtype=np.float32)
        for colour, numbers in enumerate(np.broadcast_to(table, (256, 3)).T):
            np.take(numbers, pixels[:, :, colour], out=normalised[colour], mode="clip")
        return normalised

    def _offset(self, excess: int) -> int:
        # Transformers: a larger picture loses the odd pixel at its end, a smaller one is moved by it there.
        return round(excess / 2) if self.like_open_clip else excess // 2

    def _target(self, size: tuple[int, int]) -> tuple[int, int]:
        if isinstance(self.size, tuple):
            return self.size[1], self.size[0]
        shortest = self.size or min(size)
        width, height = (int(shortest * side / min(size)) for side in size)
        return width, height


def _size(value: Any, *, proportional: bool) -> tuple[int, int] | int:
    if isinstance(value, Mapping) and "shortest_edge" in value:
        return int(value["shortest_edge"])
    if isinstance(value, int) and proportional:
        return value
    return _pair(value)


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, Mapping):
        return int(value["height"]), int(value["width"])
    return int(value), int(value)


def _sides(value: tuple[int, int] | int | None) -> tuple[int, ...]:
    if value is None:
        return (1,)
    return value if isinstance(value, tuple) else (value,)
