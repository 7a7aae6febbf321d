"""Features kept on disk by content: what was encoded once is never encoded again."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data.folders import cache_folder
from diptych.data.item_sequences import SelectedItems, is_listed
from diptych.encoders.encoder import EncodedBatch, Encoder, Modality, encoded_batches, joined_batch
from diptych.encoders.image.reading_once import HashedFile
from diptych.encoders.networks.model_files import file_state, state_of
from diptych.errors import InvalidInputError

WAIT_S = 60.0
# No more keys than SQLite takes in one query.
WINDOW = 1024
Progress = Callable[[int], None]
T = TypeVar("T")


class FeatureFile:
    """A SQLite file that maps the digest of an item to its feature row.

    Every write is one transaction: a killed process loses at most the batch in flight, and several processes may read
    and write at once.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self.path, timeout=WAIT_S, check_same_thread=False)
        # A power cut may cost the last batch, which is made again.
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS features (key BLOB PRIMARY KEY, dtype TEXT, row BLOB)")
        self._connection.commit()

    def read(self, keys: Iterable[bytes]) -> dict[bytes, AnyArray]:
        """Return the rows of those keys that are known."""
        wanted = list(dict.fromkeys(keys))
        query = f"SELECT key, dtype, row FROM features WHERE key IN ({','.join('?' * len(wanted))})"
        return {key: np.frombuffer(row, dtype=dtype) for key, dtype, row in self._connection.execute(query, wanted)}

    def write(self, rows: Mapping[bytes, AnyArray]) -> None:
        """Keep rows; a key that is already there stays as it is."""
        values = [(key, row.dtype.str, np.ascontiguousarray(row).tobytes()) for key, row in rows.items()]
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO features VALUES (?, ?, ?)", values)

    def __len__(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM features").fetchone()
        return int(count)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def item_key(item: Any, modality: Modality) -> bytes | None:
    """Return a digest of a file's bytes, an array's values or a text; None when there is nothing to read."""
    path = item_path(item, modality)
    if path is not None:
        return _file_key(path)
    if isinstance(item, str):
        return hashlib.sha256(b"text\0" + item.encode("utf-8", "surrogatepass")).digest()
    if isinstance(item, np.ndarray):
        return hashlib.sha256(f"{item.shape}{item.dtype}\0".encode() + np.ascontiguousarray(item).tobytes()).digest()
    return None


def item_path(item: Any, modality: Modality) -> str | None:
    """Return the path of an item that is a file, and None of any other."""
    is_path = isinstance(item, os.PathLike) or (modality == "image" and isinstance(item, str))
    return os.fspath(item) if is_path else None


def _file_key(path: str) -> bytes | None:
    try:
        # Opening a pipe would wait for a writer for ever; the encoder has the better words for what is no file.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except (OSError, ValueError):
        return None


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
        for start in range(0, len(items), WINDOW):
            rows = range(start, min(start + WINDOW, len(items)))
            for batch in self._window(encoder, SelectedItems(items, rows)):
                yield batch.at(rows)

    def _window(self, encoder: Encoder, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        names = _item_keys(encoder, items)
        parts = encoder.sources
        if len(parts) == 1 and parts[0] is encoder:
            yield from self._batches(encoder, items, names)
        else:
            yield joined_batch(len(items), (self._batches(part, items, names) for part in parts), encoder.from_sources)

    def _batches(self, encoder: Encoder, items: Sequence[Any], names: list[_ItemKey]) -> Iterator[EncodedBatch]:
        path = self.folder / f"{type(encoder).__name__}-{encoder.fingerprint}.sqlite"
        file: FeatureFile | None = self._attempt(path, lambda: FeatureFile(path), None)
        try:
            keys = [name.key for name in names if name.key is not None]
            known: dict[bytes, AnyArray] = {} if file is None else self._attempt(path, partial(file.read, keys), {})
            hits = {place: known[key] for place, (key, *_) in enumerate(names) if key is not None and key in known}
            if hits:
                yield EncodedBatch(rows=list(hits), features=np.stack(list(hits.values())), failures={})
            missing = [place for place in range(len(names)) if place not in hits]
            if missing:
                yield from self._encode_missing(encoder, items, names, missing, file)
        finally:
            if file is not None:
                file.close()

    def _encode_missing(
        self,
        encoder: Encoder,
        items: Sequence[Any],
        names: list[_ItemKey],
        missing: list[int],
        file: FeatureFile | None,
    ) -> Iterator[EncodedBatch]:
        for batch in encoded_batches(encoder, SelectedItems(items, missing)):
            placed = batch.at(missing)
            fresh = {
                key: row
                for place, row in zip(placed.rows, placed.features, strict=True)
                if (key := names[place].key) is not None and names[place].still_holds()
            }
            if file is not None and fresh:
                self._attempt(file.path, partial(file.write, fresh), None)
            yield placed

    def _attempt(self, path: Path, use_file: Callable[[], T], otherwise: T) -> T:
        """Return what using a file gives; where that fails, features are made without it, with a warning."""
        try:
            return use_file()
        except (OSError, sqlite3.OperationalError) as error:
            warnings.warn(f"features were not cached in {self.folder}: {error}", stacklevel=4)
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            warnings.warn(f"the cached features in {path} were damaged ({error}) and are deleted", stacklevel=4)
            path.unlink(missing_ok=True)
        return otherwise


class _ItemKey(NamedTuple):
    """The key of an item and, where it is a file, what the file was like before it was read for the key."""

    key: bytes | None
    path: str | None
    state: tuple[int, ...] | None

    def still_holds(self) -> bool:
        """Return True if what was encoded is what the key was made of."""
        return self.path is None or _state_of(self.path) == self.state


def _item_keys(encoder: Encoder, items: Sequence[Any]) -> list[_ItemKey]:
    if encoder.modality == "text" or (is_listed(items) and all(isinstance(item, HashedFile) for item in items)):
        return [_item_key_and_state(item, encoder.modality) for item in items]
    # Reading files from a slow disk overlaps well.
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda item: _item_key_and_state(item, "image"), items))


def _state_of(path: str) -> tuple[int, ...] | None:
    try:
        return file_state(path)
    except (OSError, ValueError):
        return None


def _item_key_and_state(item: Any, modality: Modality) -> _ItemKey:
    path = item_path(item, modality)
    if isinstance(item, HashedFile) and item.digest is not None and item.status is not None:
        return _ItemKey(item.digest, path, state_of(item.status))
    return _ItemKey(item_key(item, modality), path, None if path is None else _state_of(path))
