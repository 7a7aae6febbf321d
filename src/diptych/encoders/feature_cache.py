"""Features kept on disk by content: what was encoded once is never encoded again."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data.folders import cache_folder
from diptych.data.items import SelectedItems
from diptych.encoders.encoder import Encoder
from diptych.encoders.feature_file import FeatureFile
from diptych.encoders.image.encoded_batch import EncodedBatch
from diptych.encoders.item_key import item_key
from diptych.errors import InvalidInputError

Progress = Callable[[int], None]

_WINDOW = 1024
_TEXTS_AT_ONCE = 256


class FeatureCache:
    """A folder with one file of features for each encoder; by default ``features`` in the user's cache folder.

    A row is found by the digest of the item (a file's bytes, not its name) and the fingerprint of the encoder, so a
    renamed picture is known and a changed one is not. Rows are written batch by batch: an interrupted run goes on
    where it stopped. Deleting the folder is always safe. Encoders made of others (`Encoder.sources`) keep the features
    of their parts.

    >>> import tempfile
    >>> from diptych.encoders import FeatureCache, TfidfTopics
    >>> encoder = TfidfTopics(min_documents=1).fit(["a red boat", "a small cat"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = FeatureCache(folder)
    ...     first = cache.encode(encoder, ["red boat", "cat"])
    ...     again = cache.encode(encoder, ["cat"])
    >>> bool((first[1:] == again).all())
    True
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = cache_folder() / "features" if folder is None else Path(folder)

    def encode(self, encoder: Encoder, items: Sequence[Any], *, progress: Progress | None = None) -> FloatArray:
        """Return one row per item; the first item that cannot be read is an error that names it.

        ``progress`` is told, after each batch, how many items are done.
        """
        batches = []
        for batch in self.stream(encoder, items):
            if batch.failures:
                raise InvalidInputError(next(iter(batch.failures.values())))
            batches.append(batch)
            if progress is not None:
                progress(len(batch.rows))
        if not batches:
            raise InvalidInputError("there is nothing to encode; pass at least one item")
        features = np.concatenate([batch.features for batch in batches])
        order = np.concatenate([batch.rows for batch in batches])
        return features[np.argsort(order, kind="stable")]

    def stream(self, encoder: Encoder, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Yield the features of ``items`` in batches, with the reason for each item that cannot be read.

        Memory stays bounded however many items there are.
        """
        for start in range(0, len(items), _WINDOW):
            rows = range(start, min(start + _WINDOW, len(items)))
            yield from self._window(encoder, items, list(rows))

    def _window(self, encoder: Encoder, items: Sequence[Any], rows: list[int]) -> Iterator[EncodedBatch]:
        keys = _keys(encoder, [items[row] for row in rows])
        parts = encoder.sources
        if len(parts) == 1 and parts[0] is encoder:
            yield from self._batches(encoder, items, rows, keys)
            return
        features: list[dict[int, AnyArray]] = []
        failures: dict[int, str] = {}
        for part in parts:
            found: dict[int, AnyArray] = {}
            for batch in self._batches(part, items, rows, keys):
                found.update(zip(batch.rows, batch.features, strict=True))
                failures.update(batch.failures)
            features.append(found)
        readable = [row for row in rows if row not in failures]
        if readable:
            yield EncodedBatch(
                rows=readable,
                features=encoder.from_sources([np.stack([found[row] for row in readable]) for found in features]),
                failures=failures,
            )
        elif failures:
            yield EncodedBatch(rows=[], features=np.empty((0, 0), dtype=np.float32), failures=failures)

    def _batches(
        self, encoder: Encoder, items: Sequence[Any], rows: list[int], keys: list[bytes | None]
    ) -> Iterator[EncodedBatch]:
        file = self._file(encoder)
        try:
            known = {} if file is None else file.read(key for key in keys if key is not None)
            hits = [place for place, key in enumerate(keys) if key in known]
            if hits:
                features = np.stack([known[keys[place]] for place in hits])  # type: ignore[index]
                yield EncodedBatch(rows=[rows[place] for place in hits], features=features, failures={})
            missing = [place for place, key in enumerate(keys) if key not in known]
            if missing:
                yield from self._encode_missing(encoder, items, rows, keys, missing, file)
        finally:
            if file is not None:
                file.close()

    def _encode_missing(
        self,
        encoder: Encoder,
        items: Sequence[Any],
        rows: list[int],
        keys: list[bytes | None],
        missing: list[int],
        file: FeatureFile | None,
    ) -> Iterator[EncodedBatch]:
        chosen = SelectedItems(items, [rows[place] for place in missing])
        for batch in _encoded(encoder, chosen):
            places = [missing[row] for row in batch.rows]
            fresh = {
                key: row for place, row in zip(places, batch.features, strict=True) if (key := keys[place]) is not None
            }
            if file is not None and fresh:
                self._keep(file, fresh)
            yield EncodedBatch(
                rows=[rows[place] for place in places],
                features=batch.features,
                failures={rows[missing[row]]: reason for row, reason in batch.failures.items()},
            )

    def _file(self, encoder: Encoder) -> FeatureFile | None:
        try:
            return FeatureFile(self.folder / f"{type(encoder).__name__}-{encoder.fingerprint}.sqlite")
        except (OSError, sqlite3.Error) as error:
            self._warn(error)
            return None

    def _keep(self, file: FeatureFile, rows: dict[bytes, AnyArray]) -> None:
        try:
            file.write(rows)
        except (OSError, sqlite3.Error) as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        warnings.warn(f"features were not cached in {self.folder}: {error}", stacklevel=4)


def _keys(encoder: Encoder, items: list[Any]) -> list[bytes | None]:
    if encoder.modality == "text":
        return [item_key(item, "text") for item in items]
    # Reading files from a slow disk overlaps well.
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda item: item_key(item, "image"), items))


def _encoded(encoder: Encoder, items: Sequence[Any]) -> Iterator[EncodedBatch]:
    if hasattr(encoder, "stream"):
        yield from encoder.stream(items)
        return
    for start in range(0, len(items), _TEXTS_AT_ONCE):
        part = items[start : start + _TEXTS_AT_ONCE]
        rows = list(range(start, start + len(part)))
        yield EncodedBatch(rows=rows, features=encoder.transform(list(part)), failures={})
