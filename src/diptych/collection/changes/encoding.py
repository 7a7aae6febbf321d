"""From pictures and texts to stored features and points, for every retriever of a collection."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.storage.item import is_storable
from diptych.collection.storage.layout import RetrieverNames
from diptych.collection.storage.retriever_protocol import RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import check_same_points
from diptych.collection.storage.store import Store, features_table, points_table
from diptych.errors import InvalidInputError

_THUMBNAIL_SIDE = 160
_BLOCK = 1 << 20
_ORIENTATION = 0x0112
_ON_ITS_SIDE = (5, 6, 7, 8)


@dataclass(frozen=True)
class FileFacts:
    """The content hash of a file, and the size and thumbnail of its picture; 0 and empty when it shows none."""

    content_hash: str
    width: int = 0
    height: int = 0
    thumbnail: bytes = b""


def file_status(path: Path) -> os.stat_result:
    """Return the status of a regular file that can be stored; anything else is an error with a reason."""
    if not is_storable(os.fspath(path)):
        raise InvalidInputError("its name is not valid Unicode; rename it")
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"it cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError("it is no regular file")
    return status


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    # Pillow comes with these, so they wait until a file is read.
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        return _digest(file)


def file_facts(path: Path) -> FileFacts:
    """Read hash, size and thumbnail of a file; without a picture, the hash: the encoder says whether it is of use."""
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        digest = _digest(file)
        # Decoders fail on damaged files in every way they can, and each of them means: no thumbnail.
        try:
            return FileFacts(digest, *_preview(file))
        except Exception:
            return FileFacts(digest)


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    try:
        while block := file.read(_BLOCK):
            digest.update(block)
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


def _preview(file: BinaryIO) -> tuple[int, int, bytes]:
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail
    from diptych.encoders.image.picture_formats import open_image

    image = open_image(file)
    width, height = image.size
    if image.getexif().get(_ORIENTATION, 1) in _ON_ITS_SIDE:
        width, height = height, width
    return width, height, thumbnail(read_picture(file, shortest_side=_THUMBNAIL_SIDE), longest_side=_THUMBNAIL_SIDE)


_TEXTS_AT_ONCE = 1024


class Encoding:
    """Makes and stores what is missing of a retriever: features first, then points, each named by content."""

    def __init__(self, store: Store, retriever: RetrieverProtocol, names: RetrieverNames) -> None:
        check_same_points(retriever, names)
        self._store = store
        self._retriever = retriever
        self._names = names
        self.read_again = 0

    def pictures(self, files: Mapping[str, tuple[Path, os.stat_result]]) -> dict[str, str]:
        """Encode pictures by content hash; return the reasons of those that cannot be read.

        Each comes with its file's status before it was hashed: what is read from one replaced since is not kept.
        """
        without = self.from_features("image", list(files))
        failures: dict[str, str] = {}
        if not without:
            return failures
        keys: list[str] = []
        features: list[FloatArray] = []
        for batch in self._retriever.stream_image_features([files[key][0] for key in without]):
            failures |= {without[row]: reason for row, reason in batch.failures.items()}
            read = [without[row] for row in batch.rows]
            as_hashed = [_is_still(*files[key]) for key in read]
            changed = [key for key, same in zip(read, as_hashed, strict=True) if not same]
            failures |= dict.fromkeys(changed, "it changed while it was read; index again")
            if any(as_hashed):
                keys += compress(read, as_hashed)
                features.append(batch.features[as_hashed])
        if keys:
            # One write for all: the store keeps each write as a file of its own.
            self._keep("image", keys, np.concatenate(features))
        self.read_again += len(keys)
        return failures

    def texts(self, texts: Mapping[str, str]) -> None:
        """Encode texts by content hash."""
        without = self.from_features("text", list(texts))
        for start in range(0, len(without), _TEXTS_AT_ONCE):
            keys = without[start : start + _TEXTS_AT_ONCE]
            self._keep("text", keys, self._retriever.text_features([texts[key] for key in keys]))

    def missing(self, side: Side, keys: Sequence[str]) -> list[str]:
        """Return the keys that have no points yet."""
        there = set(self._store.present_keys(points_table(self._names, side), keys))
        return [key for key in keys if key not in there]

    def from_features(self, side: Side, keys: Sequence[str]) -> list[str]:
        """Make points from stored features, and return the keys that have neither."""
        missing = self.missing(side, keys)
        known: set[str] = set()
        for found, features in self._store.read_vectors(features_table(self._names, side), missing):
            fresh = [row for row, key in enumerate(found) if key not in known]
            known.update(found)
            self._keep_points(side, [found[row] for row in fresh], features[fresh])
        return [key for key in missing if key not in known]

    def _keep(self, side: Side, keys: Sequence[str], features: FloatArray) -> None:
        if len(keys):
            self._store.add_vectors(features_table(self._names, side), keys, features)
            self._keep_points(side, keys, features)

    def _keep_points(self, side: Side, keys: Sequence[str], features: AnyArray) -> None:
        if len(keys):
            to_points = self._retriever.images_to_points if side == "image" else self._retriever.texts_to_points
            points = np.asarray(to_points(np.asarray(features, dtype=np.float32)))
            self._store.add_vectors(points_table(self._names, side), keys, points)


def _is_still(path: Path, before: os.stat_result) -> bool:
    try:
        now = file_status(path)
    except InvalidInputError:
        return False
    return (now.st_size, now.st_mtime_ns, now.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
