"""A collection whose points cost nothing, filled through its store, and what a process of it holds in memory.

Encoding a million pictures is another matter: here points are random directions, captions are words of a vocabulary
drawn as often as words of a language are, and each item has a label and three fields.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.collection import Collection
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import Layout
from diptych.collection.storage.store import Store, points_table
from diptych.space import Space

WIDTH = 256
_BATCH = 20_000
_VOCABULARY = 20_000
# Points of networks fill far fewer dimensions than they have; without clusters a search has to look into many lists.
_FILLED = 32


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class PointRetriever:
    """A retriever whose points cost nothing: directions of a random subspace, for a text drawn from its digest."""

    name = "points"
    fingerprint = image_fingerprint = text_fingerprint = "points-of-a-benchmark"
    cutoff = 0.5
    space = Space("cosine")

    def __init__(self, width: int = WIDTH) -> None:
        self._width = width
        self._basis = np.random.default_rng(0).standard_normal((_FILLED, width), dtype=np.float32)

    def points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random points."""
        return _unit(rng.standard_normal((count, _FILLED), dtype=np.float32) @ self._basis)

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[Any]:
        """Benchmarks add texts alone."""
        return iter(())

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the points that the digests of texts are the seeds of."""
        seeds = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) for text in texts]
        return np.vstack([self.points(np.random.default_rng(seed), 1) for seed in seeds])

    def images_to_points(self, features: np.ndarray) -> np.ndarray:
        """Return the features."""
        return features

    texts_to_points = images_to_points
    encode_texts = text_features

    def encode_images(self, items: Sequence[Any]) -> np.ndarray:
        """Benchmarks ask with words."""
        raise NotImplementedError

    def probability(self, scores: np.ndarray, direction: str) -> np.ndarray:
        """Return the scores as they are."""
        return np.clip(scores, 0, 1)

    def score_slope(self, direction: str) -> float:
        """Return the same for all directions."""
        return 1.0

    def save(self, folder: Path) -> None:
        """Write the form of the points."""
        Path(folder).mkdir(parents=True)
        (Path(folder) / "width.json").write_text(json.dumps(self._width))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the retriever."""
        return cls(json.loads((Path(folder) / "width.json").read_text()))


def fill(
    folder: Path,
    n_items: int,
    retriever: PointRetriever,
) -> dict[str, float]:
    """Write the collection and put it into files; return the seconds of each step."""
    Collection.create(folder, retriever, root=folder.parent, load_retriever=PointRetriever.load).close()
    store, rng = Store(folder / "store"), np.random.default_rng(1)
    names = Layout.read(folder).retriever
    words = np.array([f"word{number}" for number in range(_VOCABULARY)])
    weights = 1 / np.arange(1, _VOCABULARY + 1)
    seconds = dict.fromkeys(("points", "items"), 0.0)
    for start in range(0, n_items, _BATCH):
        rows = range(start, min(start + _BATCH, n_items))
        keys = [hashlib.sha256(str(row).encode()).hexdigest() for row in rows]
        points = retriever.points(rng, len(rows))
        texts = [" ".join(chosen) for chosen in rng.choice(words, (len(rows), 8), p=weights / weights.sum())]
        items = [_item(row, key, text) for row, key, text in zip(rows, keys, texts, strict=True)]
        started = time.perf_counter()
        store.add_vectors(points_table(names, "image"), keys, points)
        seconds["points"] += time.perf_counter() - started
        started = time.perf_counter()
        store.add_captions([(item.caption_ids[0], item.id, item.captions[0]) for item in items])
        store.put_items(items)
        seconds["items"] += time.perf_counter() - started
    with opened(folder) as collection:
        seconds["engine's indexes"] = timed(lambda: store.compact(everything=True))
        seconds["files"] = timed(lambda: len(collection))
        seconds["points' files"] = timed(lambda: collection.search("1", exact=True))
        seconds["index"] = timed(collection.build_index)
    return seconds


def _item(row: int, key: str, text: str) -> Item:
    times = {"added_ns": 10**18 + 1000 * row, "updated_ns": 10**18 + 1000 * row}
    return Item(
        key[:16],
        f"{row % 1000}/picture-{row}.jpg",
        key,
        size=1,
        width=64,
        height=48,
        labels=(f"label {row % 12}",),
        metadata={"year": 1950 + row % 75, "camera": f"Camera {row % 20}", "iso": 50 + row * 7 % 6400},
        caption_ids=(f"{key[:16]}-0",),
        captions=(text,),
        **times,
    )


def opened(folder: Path) -> Collection:
    """Return the collection of a folder that was filled."""
    return Collection.open(folder, load_retriever=PointRetriever.load)


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def private_megabytes() -> float:
    """Return what this process alone holds in memory; files that are mapped belong to all."""
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(kilobytes) for kilobytes in re.findall(r"Anonymous: +(\d+)", rollup)) / 1024
