"""Features kept on disk by content: what was encoded once is never encoded again."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data.folders import cache_folder
from diptych.data.items import SelectedItems
from diptych.encoders.encoded_batches import encoded_batches, joined_batch
from diptych.encoders.encoder import Encoder, Modality
from diptych.encoders.feature_file import FeatureFile
from diptych.encoders.image.encoded_batch import EncodedBatch
from diptych.encoders.item_key import file_state, item_key, item_path
from diptych.errors import InvalidInputError

Progress = Callable[[int], None]

_WINDOW = 1024


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
        if isinstance(items, (str, bytes, os.PathLike)):
            raise InvalidInputError("items must be a sequence, got one text or path; pass it in a list")
        return self._stream(encoder, items)

    def _stream(self, encoder: Encoder, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        for start in range(0, len(items), _WINDOW):
            rows = range(start, min(start + _WINDOW, len(items)))
            for batch in self._window(encoder, SelectedItems(items, rows)):
                yield EncodedBatch(
                    rows=[rows[place] for place in batch.rows],
                    features=batch.features,
                    failures={rows[place]: reason for place, reason in batch.failures.items()},
                )

    def _window(self, encoder: Encoder, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        names = _named(encoder, items)
        parts = encoder.sources
        if len(parts) == 1 and parts[0] is encoder:
            yield from self._batches(encoder, items, names)
        else:
            yield joined_batch(len(items), (self._batches(part, items, names) for part in parts), encoder.from_sources)

    def _batches(self, encoder: Encoder, items: Sequence[Any], names: list[_Name]) -> Iterator[EncodedBatch]:
        file = self._file(encoder)
        try:
            known = {} if file is None else self._known(file, names)
            hits = [place for place, name in enumerate(names) if name.key in known]
            if hits:
                features = np.stack([known[names[place].key] for place in hits])  # type: ignore[index]
                yield EncodedBatch(rows=hits, features=features, failures={})
            missing = [place for place, name in enumerate(names) if name.key not in known]
            if missing:
                yield from self._encode_missing(encoder, items, names, missing, file)
        finally:
            if file is not None:
                file.close()

    def _encode_missing(
        self, encoder: Encoder, items: Sequence[Any], names: list[_Name], missing: list[int], file: FeatureFile | None
    ) -> Iterator[EncodedBatch]:
        for batch in encoded_batches(encoder, SelectedItems(items, missing)):
            places = [missing[row] for row in batch.rows]
            fresh = {
                key: row
                for place, row in zip(places, batch.features, strict=True)
                if (key := names[place].key) is not None and names[place].still_holds()
            }
            if file is not None and fresh:
                self._keep(file, fresh)
            failures = {missing[row]: reason for row, reason in batch.failures.items()}
            yield EncodedBatch(rows=places, features=batch.features, failures=failures)

    def _known(self, file: FeatureFile, names: list[_Name]) -> dict[bytes, AnyArray]:
        try:
            return file.read(name.key for name in names if name.key is not None)
        except (OSError, sqlite3.Error) as error:
            self._warn(error)
            return {}

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


class _Name(NamedTuple):
    """The key of an item and, where it is a file, what the file was like before it was read for the key."""

    key: bytes | None
    path: str | None
    state: tuple[int, ...] | None

    def still_holds(self) -> bool:
        """Say whether what was encoded is what the key was made of."""
        return self.path is None or file_state(self.path) == self.state


def _named(encoder: Encoder, items: Sequence[Any]) -> list[_Name]:
    if encoder.modality == "text":
        return [_name(item, "text") for item in items]
    # Reading files from a slow disk overlaps well.
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda item: _name(item, "image"), items))


def _name(item: Any, modality: Modality) -> _Name:
    path = item_path(item, modality)
    state = None if path is None else file_state(path)
    return _Name(item_key(item, modality), path, state)
