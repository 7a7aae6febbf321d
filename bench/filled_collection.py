"""Collections that cost no encoding, loaded with points, and what a process of one holds in memory.

Captions are words of a vocabulary drawn as often as words of a language are, and each item has a label and three
fields. Points are random directions, or scattered around phrases in the space of the default retriever.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil
from PIL import Image

from diptych.collection import Collection
from diptych.collection.store.dialect import Connection
from diptych.collection.store.opening import open_store
from diptych.collection.store.writing import put_thumbnails
from diptych.retriever import Retriever
from diptych.space import Space

WIDTH = 256
_BATCH = 20_000
_AT_ONCE = 100_000
_VOCABULARY = 20_000
# Points of networks fill far fewer dimensions than they have; without clusters a search has to look into many lists.
_FILLED = 32
ADJECTIVES = ("a small", "a large", "a white", "a black", "a running", "a sleeping", "an old", "a young")
NOUNS = ("dog", "cat", "horse", "child", "cyclist", "boat", "train", "bird", "tree", "house", "car", "football player")
PLACES = ("on a beach", "in the snow", "in a street", "by a river", "at night", "in a park", "on a mountain", "indoors")
Draw = Callable[[np.random.Generator, int], np.ndarray]


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
    place: Path | str,
    n_items: int,
    retriever: PointRetriever | None,
    draw: Draw,
    thumbnails: Sequence[bytes] = (),
    root: Path | None = None,
) -> float:
    """Load items of the default or another retriever's space, with points that ``draw`` makes; return the seconds.

    What is loaded is made before the clock runs, which stops at the last commit: indexes are built after it.
    """
    root = Path(place).parent if root is None else root
    load = None if retriever is None else PointRetriever.load
    rng, seconds = np.random.default_rng(1), 0.0
    words = np.array([f"word{number}" for number in range(_VOCABULARY)])
    weights = 1 / np.arange(1, _VOCABULARY + 1)
    with Collection.create(place, retriever, root=root, load_retriever=load) as collection:
        for start in range(0, n_items, _AT_ONCE):
            batches = []
            for first in range(start, min(start + _AT_ONCE, n_items), _BATCH):
                rows = range(first, min(first + _BATCH, n_items))
                texts = [" ".join(chosen) for chosen in rng.choice(words, (len(rows), 8), p=weights / weights.sum())]
                points = {"image_point": draw(rng, len(rows)), "text_point": draw(rng, len(rows))}
                batches.append(_columns(rows, texts) | points)
            times = [time.perf_counter()]
            collection.load(batches, progress=lambda _, times=times: times.append(time.perf_counter()))
            seconds += times[-1] - times[0]
    if thumbnails:
        store = open_store(place)
        store.write(lambda db: _put_thumbnails(db, thumbnails))
        store.close()
    return seconds


def _put_thumbnails(db: Connection, thumbnails: Sequence[bytes]) -> None:
    contents = db.ids("SELECT content FROM item WHERE content IS NOT NULL").tolist()
    put_thumbnails(db, {content: thumbnails[content % len(thumbnails)] for content in contents})


def _columns(rows: range, texts: list[str]) -> dict[str, Any]:
    keys = [hashlib.sha256(str(row).encode()).hexdigest() for row in rows]
    return {
        "id": [key[:16] for key in keys],
        "path": [f"{row % 1000}/picture-{row}.jpg" for row in rows],
        "content_hash": keys,
        "caption": texts,
        "labels": [[NOUNS[row % len(NOUNS)]] for row in rows],
        "metadata": [
            {"year": 1950 + row % 75, "camera": f"Camera {row % 20}", "iso": 50 + row * 7 % 6400} for row in rows
        ],
    }


def painted_collection(pictures: Path, items: int, place: str | None = None) -> str:
    """Make a collection of the default retriever's space, in ``pictures/.diptych`` or elsewhere; return its place.

    Queries cost what they cost, and have near neighbours: points are scattered around those of phrases.
    """
    pictures.mkdir(parents=True, exist_ok=True)
    centres = np.asarray(Retriever.default().encode_texts(phrases()), dtype=np.float32)
    scale = float(np.linalg.norm(centres, axis=1).mean()) / np.sqrt(centres.shape[1])

    def scattered(rng: np.random.Generator, count: int) -> np.ndarray:
        noise = rng.standard_normal((count, centres.shape[1]), dtype=np.float32)
        return centres[rng.integers(0, len(centres), count)] + 0.7 * scale * noise

    rng = np.random.default_rng(0)
    place = place or str(pictures / ".diptych")
    fill(place, items, None, scattered, [_thumbnail(rng) for _ in range(200)], root=pictures)
    return place


def phrases() -> list[str]:
    """Return the phrases that points lie around, which are good queries too."""
    return [" ".join(words) for words in itertools.product(ADJECTIVES, NOUNS, PLACES)]


def _thumbnail(rng: np.random.Generator) -> bytes:
    colours = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(colours).resize((64, 48), Image.Resampling.BILINEAR).save(stream, "JPEG")
    return stream.getvalue()


def opened(place: Path | str) -> Collection:
    """Return a collection that was filled."""
    return Collection.open(place, load_retriever=PointRetriever.load)


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def private_megabytes() -> float:
    """Return what this process alone holds in memory; files that are mapped belong to all."""
    memory = psutil.Process().memory_info()
    return float(memory.rss - memory.shared) / 1e6
