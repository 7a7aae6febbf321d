"""What pictures and texts go through before an exported model sees them, as the files beside it say."""

from __future__ import annotations

import html
import string
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
_CURLED = str.maketrans({**dict.fromkeys("\u2018\u2019", "'"), **dict.fromkeys("\u201c\u201d", '"')})


def single_spaced(text: str) -> str:
    """Return a text without HTML's entities and curly quotes, with one space wherever it has white space.

    >>> single_spaced(" Tom &amp;amp;  Jerry’s ")
    "Tom & Jerry's"
    """
    return " ".join(html.unescape(html.unescape(text)).translate(_CURLED).split())


def without_punctuation(text: str) -> str:
    """Return the words of a text in small letters, without ASCII's punctuation, as SigLIP was trained.

    >>> without_punctuation("A cat,  a DOG!")
    'a cat a dog'
    """
    return " ".join(text.lower().translate(_NO_PUNCTUATION).split())


def _canonical(text: str) -> str:
    return without_punctuation(single_spaced(text).replace("_", " "))


OPEN_CLIP_CLEANING: dict[str, Clean] = {
    "canonicalize": _canonical,
    "lower": lambda text: single_spaced(text).lower(),
    "whitespace": single_spaced,
}
"""The ways of cleaning that a configuration of OpenCLIP may name."""

_BICUBIC = int(Image.Resampling.BICUBIC)
_FILTERS = {"bicubic": _BICUBIC, "bilinear": int(Image.Resampling.BILINEAR)}
_CLIP_MEAN, _CLIP_DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
DETAIL = 16
"""Pictures are read at full size up to twice this many times what the network sees, which no camera reaches; larger
ones may be averaged first: each pixel that the network sees is a mean over a thousand."""


@dataclass(frozen=True)
class PicturePreparation:
    """Make a picture RGB, resize it, crop it in the middle or put it on a square, scale and normalise.

    Transformers makes the picture RGB first; OpenCLIP resizes it as it is stored, which shows where it is transparent,
    CMYK or has a palette. Where the crop cannot be in the very middle, Transformers goes to the pixel before and
    OpenCLIP to the even one.
    """

    size: tuple[int, int] | int | None  # (height, width), or the shortest side, which keeps the proportions
    crop: tuple[int, int] | None = None  # (height, width) cut from the middle, black beyond the picture
    resample: int = _BICUBIC
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    deviation: tuple[float, ...] = (1.0, 1.0, 1.0)
    like_open_clip: bool = False
    fill: int | None = None  # the colour around a picture whose longest side is resized to fit

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

    @classmethod
    def from_open_clip(cls, config: Mapping[str, Any], side: Any) -> PicturePreparation:
        """Read a ``preprocess_cfg`` of OpenCLIP; ``side`` counts where it does not say the size."""
        mode = config.get("resize_mode") or "shortest"
        interpolation = config.get("interpolation") or "bicubic"
        if mode not in ("shortest", "squash", "longest") or interpolation not in _FILTERS:
            raise ModelFileError(
                f"pictures are prepared with resize_mode={mode!r} and interpolation={interpolation!r}, which is not "
                "supported; take an edition of the model with shortest, squash or longest, and bicubic or bilinear"
            )
        size = _pair(config.get("size") or side)
        return cls(
            size=min(size) if mode == "shortest" else size,
            crop=size if mode == "shortest" else None,
            resample=_FILTERS[interpolation],
            mean=tuple(config.get("mean") or _CLIP_MEAN),
            deviation=tuple(config.get("std") or _CLIP_DEVIATION),
            like_open_clip=True,
            fill=int(config.get("fill_color") or 0) if mode == "longest" else None,
        )

    @property
    def output_size(self) -> tuple[int, int] | None:
        """The (height, width) that every picture gets, or None when that depends on the picture."""
        return self.crop or (self.size if isinstance(self.size, tuple) else None)

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        return DETAIL * max(*_sides(self.size), *_sides(self.crop))

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
        image = image.convert("RGB")
        if self.fill is not None and isinstance(self.size, tuple):
            height, width = self.size
            square = Image.new("RGB", (width, height), (self.fill,) * 3)
            square.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
            image = square
        # A byte of a colour always becomes the same number, which is looked up sooner than it is computed.
        values = np.arange(256, dtype=np.float32)[:, None] * np.float32(self.scale)
        table = (values - np.array(self.mean, dtype=np.float32)) / np.array(self.deviation, dtype=np.float32)
        pixels = np.asarray(image)
        normalised = np.empty((3, *pixels.shape[:2]), dtype=np.float32)
        for colour, numbers in enumerate(np.broadcast_to(table, (256, 3)).T):
            np.take(numbers, pixels[:, :, colour], out=normalised[colour], mode="clip")
        return normalised

    def _offset(self, excess: int) -> int:
        # Transformers: a larger picture loses the odd pixel at its end, a smaller one is moved by it there.
        return round(excess / 2) if self.like_open_clip else excess // 2

    def _target(self, size: tuple[int, int]) -> tuple[int, int]:
        if not isinstance(self.size, tuple):
            shortest = self.size or min(size)
            width, height = (int(shortest * side / min(size)) for side in size)
            return width, height
        if self.fill is None:
            return self.size[1], self.size[0]
        width, height = (round(side * min(self.size) / max(size)) for side in size)
        return max(1, width), max(1, height)


def _size(value: Any, *, proportional: bool) -> tuple[int, int] | int:
    if isinstance(value, Mapping) and "shortest_edge" in value:
        return int(value["shortest_edge"])
    if isinstance(value, int) and proportional:
        return value
    return _pair(value)


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, Mapping):
        return int(value["height"]), int(value["width"])
    if isinstance(value, (list, tuple)):
        return int(value[0]), int(value[-1])
    return int(value), int(value)


def _sides(value: tuple[int, int] | int | None) -> tuple[int, ...]:
    if value is None:
        return (1,)
    return value if isinstance(value, tuple) else (value,)
