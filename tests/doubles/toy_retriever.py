"""A retriever that costs nothing, and checks of the collections that use it."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from diptych.collection import Collection
from diptych.encoders.encoder import EncodedBatch
from diptych.space import Space

WIDTH = 8


class ToyRetriever:
    """A retriever that costs nothing: features are drawn from the digest of the content, points are a turn of them."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        self.turn = turn
        self.space = Space(space)
        self.name = f"toy {turn}"
        self.image_fingerprint = self.text_fingerprint = "toy"
        self.fingerprint = f"toy-{space}-{turn}"
        self.cutoff = 0.5
        self._matrix = np.linalg.qr(np.random.default_rng(turn).standard_normal((WIDTH, WIDTH)))[0]

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Take files that begin with ``bad`` for unreadable pictures."""
        contents = {row: Path(item).read_bytes() for row, item in enumerate(items)}
        good = [row for row, content in contents.items() if not content.startswith(b"bad")]
        failures = {row: "it is bad" for row in contents if row not in good}
        yield EncodedBatch(good, self._drawn([contents[row] for row in good]), failures)

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the features of texts."""
        return self._drawn([text.encode() for text in texts])

    def images_to_points(self, features: np.ndarray) -> np.ndarray:
        """Return the points of features."""
        points = np.asarray(features, dtype=np.float64) @ self._matrix
        if self.space.name == "hamming":
            return np.packbits(points > 0, axis=1)
        return (np.abs(points) if self.space.name == "kl" else points).astype(np.float32)

    texts_to_points = images_to_points

    def encode_images(self, items: Sequence[Any]) -> np.ndarray:
        """Return the points of files."""
        return self.images_to_points(self._drawn([Path(item).read_bytes() for item in items]))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return the points of texts."""
        return self.texts_to_points(self.text_features(texts))

    def probability(self, scores: np.ndarray, direction: str) -> np.ndarray:
        """Return something between 0 and 1 that grows with the score."""
        del direction
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -50, 50))))

    def score_slope(self, direction: str) -> float:
        """Return the slope of the logarithm of the odds."""
        del direction
        return 1.0

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the two numbers that make the retriever."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "toy.json").write_text(json.dumps([self.turn, self.space.name]))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> ToyRetriever:
        """Read a saved one."""
        return cls(*json.loads((Path(folder) / "toy.json").read_text()))

    @staticmethod
    def _drawn(contents: Sequence[bytes]) -> np.ndarray:
        return np.array([_drawn_from(content) for content in contents], dtype=np.float32).reshape(-1, WIDTH)


@lru_cache(maxsize=20_000)
def _drawn_from(content: bytes) -> np.ndarray:
    """Return features; texts come again and again, and to begin a generator takes longer than all else of a trial."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()[:8])).standard_normal(WIDTH)


def item_state(captions: Sequence[str], labels: Sequence[str]) -> list[list[str]]:
    """Return what tests compare of an item."""
    return [list(captions), list(labels)]


def wrong_points(
    collection: Collection, retriever: str | None = None, dice: random.Random | None = None, most: int | None = None
) -> list[str]:
    """Ask for every caption, or so many, by its own point: the best answer must be itself, with a score of one."""
    captions = {
        caption: text for item in collection for caption, text in zip(item.caption_ids, item.captions, strict=True)
    }
    if not captions:
        return []
    asked = list(captions)
    if dice is not None and most is not None:
        asked = dice.sample(asked, min(len(asked), most))
    source = collection.retriever if retriever is None else collection.retriever_named(retriever)
    points = source.encode_texts([captions[caption] for caption in asked])
    ids, scores = collection.nearest(points, 1, target="texts", retriever=retriever)
    return [
        f"caption {caption} is found as {found} with {score:.4f}"
        for caption, found, score in zip(asked, ids[:, 0], scores[:, 0], strict=True)
        if captions.get(found) != captions[caption] or abs(score - 1) > 1e-3
    ]


class Killed(BaseException):
    """Stands for the end of the process."""


def interrupt_change(change: Callable[..., object], retriever: ToyRetriever) -> None:
    """Begin to change the retriever, and end when the first points are stored."""

    def stop(_: object) -> None:
        raise Killed

    with suppress(Killed):
        change(retriever, progress=stop)
        raise AssertionError("the change was not interrupted")
