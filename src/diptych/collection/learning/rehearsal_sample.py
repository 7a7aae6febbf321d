"""The pictures that two retrievers are compared on: drawn from a collection, encoded by the one that is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Collection as Contents
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.collection import Collection
from diptych.collection.indexing.file_facts import content_hash, file_status
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.store.scoring import Scoring
from diptych.errors import CollectionError, InvalidInputError

Progress = Callable[[str, int, int], None]
_PICTURES_AT_ONCE = 32


def draw_items(collection: Collection, size: int, clicked: Contents[str], random_state: int) -> tuple[list[Item], int]:
    """Return at most ``size`` items with different pictures that can be read, and how many had to be passed over.

    ``clicked`` are contents of pictures. These come first, then items with captions: others have nothing to be judged
    by.
    """
    items = [item for item in collection if item.path is not None and item.content_hash is not None]
    use = np.array([2 * (item.content_hash in clicked) + bool(item.captions) for item in items], dtype=np.int64)
    drawn = np.random.default_rng(random_state).permutation(len(items))
    chosen: dict[str, Item] = {}
    n_unreadable = 0
    for row in drawn[np.argsort(-use[drawn], kind="stable")].tolist():
        if len(chosen) == size:
            break
        item = items[row]
        if str(item.content_hash) in chosen:
            continue
        if _is_as_stored(collection, item):
            chosen[str(item.content_hash)] = item
        else:
            n_unreadable += 1
    return list(chosen.values()), n_unreadable


def _is_as_stored(collection: Collection, item: Item) -> bool:
    """Return True if the file of an item can be opened and is still the picture that the stored point was made of."""
    path = collection.picture_of(item)
    if path is None:
        return False
    try:
        status = file_status(path)
        return (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns) or (
            content_hash(path) == item.content_hash
        )
    except InvalidInputError:
        return False


@dataclass(frozen=True, eq=False)
class PictureSample:
    """Pictures with their points of two retrievers: stored ones of the old, fresh ones of the new.

    ``seconds`` is what encoding took, ``picture_seconds`` what a picture took, the first ones, which wait for the
    networks to be loaded, left out. ``reads_pictures`` is False where stored features serve the new retriever as well.
    """

    items: tuple[Item, ...]
    old: AnyArray
    new: AnyArray
    seconds: float
    picture_seconds: float
    reads_pictures: bool

    @classmethod
    def encoded(
        cls, collection: Collection, candidate: RetrieverProtocol, items: Sequence[Item], progress: Progress
    ) -> PictureSample:
        """Take the stored points of some items, and encode their pictures with the candidate."""
        ids, old = collection.points("image", [item.id for item in items])
        known = {item.id: item for item in items}
        started = time.perf_counter()
        keeper = _with_same_features(collection, candidate)
        if keeper is None:
            files = [Path(str(collection.picture_of(known[item_id]))) for item_id in ids]
            rows, features, picture_seconds = _encoded_pictures(candidate, files, progress)
        else:
            found, features = collection.features("image", ids, keeper)
            row_of = {item_id: row for row, item_id in enumerate(ids)}
            rows, picture_seconds = [row_of[item_id] for item_id in found], 0.0
        if not rows:
            raise InvalidInputError(
                f"{candidate.name} cannot read any of the {len(items):,} pictures that were drawn; check the folder of "
                "the pictures with: diptych index FOLDER"
            )
        scoring = Scoring(collection.retriever.space, "text_query")
        old, new = scoring.comparable(old[rows], "image"), _stored(candidate, features)
        sampled = tuple(known[ids[row]] for row in rows)
        return cls(sampled, old, new, time.perf_counter() - started, picture_seconds, keeper is None)


def _stored(candidate: RetrieverProtocol, features: FloatArray) -> AnyArray:
    """Return the points of pictures as they would be stored, so that both retrievers are rounded alike."""
    scoring = Scoring(candidate.space, "text_query")
    return scoring.comparable(scoring.stored(candidate.images_to_points(features)), "image")


def _with_same_features(collection: Collection, candidate: RetrieverProtocol) -> str | None:
    """Return the name of a stored retriever whose image features are those of the candidate."""
    for stored in collection.retrievers():
        # Its encoders may not be on this machine.
        with suppress(CollectionError):
            if collection.retriever_named(stored.name).image_fingerprint == candidate.image_fingerprint:
                return stored.name
    return None


def _encoded_pictures(
    retriever: RetrieverProtocol, files: Sequence[Path], progress: Progress
) -> tuple[list[int], FloatArray, float]:
    """Return which files could be read, their features, and the seconds for each."""
    found: dict[int, AnyArray] = {}
    pace: list[float] = []
    for start in range(0, len(files), _PICTURES_AT_ONCE):
        progress(f"encoding pictures with {retriever.name}", start, len(files))
        began = time.perf_counter()
        part = files[start : start + _PICTURES_AT_ONCE]
        for batch in retriever.stream_image_features(part):
            found |= {start + row: features for row, features in zip(batch.rows, batch.features, strict=True)}
        pace.append((time.perf_counter() - began) / len(part))
    progress(f"encoding pictures with {retriever.name}", len(files), len(files))
    rows = sorted(found)
    features = np.stack([found[row] for row in rows]) if rows else np.zeros((0, 0), dtype=np.float32)
    return rows, features, float(np.mean(pace[1:] or pace or [0.0]))
