"""A retriever that sees colours: a picture is the shares of its pixels that are red, green, blue or grey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from diptych.encoders import read_picture
from diptych.encoders.encoder import EncodedBatch
from tests.doubles import ToyRetriever

COLOURS = {"red": (255, 0, 0), "green": (0, 160, 0), "blue": (0, 0, 255), "grey": (128, 128, 128)}
_SHADES = np.array(list(COLOURS.values()), dtype=np.int64)


class ColourRetriever(ToyRetriever):
    """Words are the names of colours; ``turn`` and ``space`` are those of the toy, and change the points alone."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        super().__init__(turn, space)
        self._matrix = np.roll(np.eye(len(COLOURS)), turn, axis=1)
        self.cutoff = 0.55

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Count the pixels that are nearest to each colour."""
        yield EncodedBatch(list(range(len(items))), np.stack([_shares(item) for item in items]), {})

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return which colours are named."""
        return np.array([[name in text.split() for name in COLOURS] for text in texts], dtype=np.float32)

    def encode_images(self, items: Sequence[Any]) -> np.ndarray:
        """Return the points of pictures."""
        return self.images_to_points(np.stack([_shares(item) for item in items]))


def _shares(picture: Any) -> np.ndarray:
    pixels = read_picture(picture).reshape(-1, 1, 3).astype(np.int64)
    nearest = ((pixels - _SHADES) ** 2).sum(axis=2).argmin(axis=1)
    return (np.bincount(nearest, minlength=len(COLOURS)) / len(nearest)).astype(np.float32)
