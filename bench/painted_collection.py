"""A large collection that costs no encoding, for benchmarks: points around phrases, with small thumbnails.

The retriever is the default one, so that a query costs what it costs; the pictures are points scattered around the
points of phrases, so that queries have near neighbours.
"""

from __future__ import annotations

import hashlib
import io
import itertools
from pathlib import Path

import numpy as np
from PIL import Image

from diptych.collection import Collection
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import Layout
from diptych.collection.storage.store import Store, points_table

ADJECTIVES = ("a small", "a large", "a white", "a black", "a running", "a sleeping", "an old", "a young")
NOUNS = ("dog", "cat", "horse", "child", "cyclist", "boat", "train", "bird", "tree", "house", "car", "football player")
PLACES = ("on a beach", "in the snow", "in a street", "by a river", "at night", "in a park", "on a mountain", "indoors")
_BATCH = 10_000
_PICTURES = 200


def phrases() -> list[str]:
    """Return the phrases that points lie around, which are good queries too."""
    return [" ".join(words) for words in itertools.product(ADJECTIVES, NOUNS, PLACES)]


def painted_collection(pictures: Path, items: int) -> Path:
    """Make a collection of so many items in ``pictures/.diptych`` and return its folder."""
    pictures.mkdir(parents=True, exist_ok=True)
    folder = pictures / ".diptych"
    with Collection.create(folder, root=pictures) as collection:
        centres = np.asarray(collection.retriever.encode_texts(phrases()), dtype=np.float32)
    rng = np.random.default_rng(0)
    thumbnails = [_thumbnail(rng) for _ in range(_PICTURES)]
    store = Store(folder / "store")
    table = points_table(Layout.read(folder).retriever, "image")
    scale = float(np.linalg.norm(centres, axis=1).mean()) / np.sqrt(centres.shape[1])
    for start in range(0, items, _BATCH):
        rows = range(start, min(start + _BATCH, items))
        keys = [hashlib.sha256(str(row).encode()).hexdigest() for row in rows]
        noise = rng.standard_normal((len(rows), centres.shape[1]), dtype=np.float32)
        points = centres[rng.integers(0, len(centres), len(rows))] + 0.7 * scale * noise
        store.add_vectors(table, keys, points)
        store.add_thumbnails({key: thumbnails[row % _PICTURES] for key, row in zip(keys, rows, strict=True)})
        store.put_items([_item(row, key) for row, key in zip(rows, keys, strict=True)])
    return folder


def _item(row: int, key: str) -> Item:
    facts = {"labels": (NOUNS[row % len(NOUNS)],), "metadata": {"year": 1990 + row % 30}}
    times = {"added_ns": 10**18 + row, "updated_ns": 10**18 + row}
    return Item(key[:16], f"picture-{row}.jpg", key, size=1, width=64, height=48, **facts, **times)


def _thumbnail(rng: np.random.Generator) -> bytes:
    colours = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(colours).resize((64, 48), Image.Resampling.BILINEAR).save(stream, "JPEG")
    return stream.getvalue()
