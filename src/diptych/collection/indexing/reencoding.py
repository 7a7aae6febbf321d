"""Giving every picture and caption a point of a model: from stored features, or encoded again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from diptych.cluster import open_workers
from diptych.collection.indexing.add_report import AddProgress, Progress
from diptych.collection.indexing.encoding import (
    Encoded,
    EncodingTask,
    Source,
    StatedFile,
    encoded,
    put_encoded,
    stored_features,
)
from diptych.collection.indexing.file_facts import content_hash, file_status
from diptych.collection.retriever_protocol import SIDES, Side
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.models import check_same_points
from diptych.collection.store.points import missing_points
from diptych.collection.store.store import Store
from diptych.errors import InvalidInputError

# Reading pictures takes long: each task is a commit, from which an interrupted run goes on.
PICTURES_AT_ONCE = 256
CONTENTS_AT_ONCE = 1024

Owner = tuple[str | None, int, int]
"""The path, size and time of a file as they are stored."""
T = TypeVar("T")


@dataclass(frozen=True)
class ReencodeReport:
    """How many pictures and captions got points of the new retriever.

    ``read_again`` counts the pictures that had to be read for another image encoder, ``failures`` gives the reason for
    each path that could not be and each caption that the encoder refused: those items stay, without being found by it.
    """

    pictures: int = 0
    captions: int = 0
    read_again: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class _Batch:
    """Contents of one side that are made together: their ids, and what reports call them, by hash."""

    side: Side
    ids: Mapping[str, int]
    names: Mapping[str, str] = field(default_factory=dict)


class Reencoding:
    """Makes the points that a model lacks, in batches that are durable one by one.

    Points are made of stored features here; pictures and captions without any are encoded by workers. What could not
    be encoded is remembered, so that another :meth:`run` only makes what has come since.
    """

    def __init__(self, store: Store, root: Root, source: Source, scheduler: str | None = None) -> None:
        model, retriever = source
        check_same_points(retriever, model)
        self._store = store
        self._root = root
        self._model = model
        self._source = source
        self._scheduler = scheduler
        self._made: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._read_again = 0
        self._seconds = 0.0
        # Contents that could not be encoded, and the reasons by name.
        self._failed: dict[Side, set[int]] = {side: set() for side in SIDES}
        self._failures: dict[str, str] = {}

    def missing(self, db: Connection) -> dict[Side, list[int]]:
        """Return the contents that lack points, without those that could not be encoded."""
        return {
            side: [one for one in missing_points(db, self._model.id, side).tolist() if one not in self._failed[side]]
            for side in SIDES
        }

    def run(self, progress: Progress | None = None) -> ReencodeReport:
        """Make all missing points; return what all runs have made."""
        started = time.perf_counter()
        with self._store.reading() as db:
            missing = self.missing(db)
        done, total = 0, sum(map(len, missing.values()))

        def count(number: int) -> None:
            nonlocal done
            done += number
            if progress is not None and number:
                progress(AddProgress(done, total))

        if total:
            with open_workers(self._scheduler) as workers:
                for batch, made in encoded(workers, self._tasks(missing, count), [self._source]):
                    self._keep(batch, made)
                    count(len(batch.ids))
        self._seconds += time.perf_counter() - started
        counts = {"pictures": self._made["image"], "captions": self._made["text"], "read_again": self._read_again}
        return ReencodeReport(**counts, failures=dict(self._failures), seconds=self._seconds)

    def _keep(self, batch: _Batch, made: Encoded) -> None:
        # What others have removed meanwhile has no number any more.
        self._store.write(lambda db: put_encoded(db, made, [self._source], _hashes(db, list(batch.ids.values()))))
        keys, _ = made.points.get((self._model.id, batch.side), ([], None))
        self._made[batch.side] += len(keys)
        if batch.side == "image" and made.features:
            self._read_again += len(keys)
        for key, reason in made.failures.items():
            self._fail(batch, key, reason)

    def _fail(self, batch: _Batch, key: str, reason: str) -> None:
        self._failed[batch.side].add(batch.ids[key])
        self._failures[batch.names.get(key, key)] = reason

    def _tasks(
        self, missing: Mapping[Side, Sequence[int]], count: Callable[[int], None]
    ) -> Iterator[tuple[_Batch, EncodingTask]]:
        """Yield what has stored features, and, in smaller parts, what is to be encoded."""
        for side in SIDES:
            encoder, points = (self._model.encoder(side), side), (self._model.id, side)
            for contents in _parts(missing[side], CONTENTS_AT_ONCE):
                with self._store.reading() as db:
                    ids = _hashes(db, contents)
                    features = stored_features(db, encoder, ids)
                    known = set(features[0])
                    left = {key: number for key, number in ids.items() if key not in known}
                    owners = _owners(db, left) if side == "image" else {}
                    texts = _texts(db, left) if side == "text" else {}
                if known:
                    batch = _Batch(side, {key: ids[key] for key in features[0]})
                    yield batch, EncodingTask(features={encoder: features}, lacking={points: features[0]})
                names = texts or {
                    key: next((path for path, _, _ in found if path), key) for key, found in owners.items()
                }
                files = self._files(_Batch(side, left, names), owners)
                # The others were removed meanwhile, or have no file that can be used.
                count(len(contents) - len(known) - len(files) - len(texts))
                for keys in _parts([*files, *texts], PICTURES_AT_ONCE if side == "image" else CONTENTS_AT_ONCE):
                    batch = _Batch(side, {key: ids[key] for key in keys}, names)
                    some_files = {key: files[key] for key in keys if key in files}
                    some_texts = {key: texts[key] for key in keys if key in texts}
                    yield batch, EncodingTask(some_files, some_texts, {encoder: keys}, lacking={points: keys})

    def _files(self, batch: _Batch, owners: Mapping[str, Sequence[Owner]]) -> dict[str, StatedFile]:
        files = {}
        for key, found in owners.items():
            try:
                files[key] = self._file_with(key, found)
            except InvalidInputError as reason:
                self._fail(batch, key, str(reason))
        return files

    def _file_with(self, content: str, owners: Sequence[Owner]) -> StatedFile:
        """Return a file that still holds this content, with its status from before it was looked at."""
        problem = InvalidInputError("it is stored without a file")
        for stored, size, mtime_ns in owners:
            if stored is None:
                continue
            self._root.check_trusted()
            path = self._root.file(stored)
            try:
                status = file_status(path)
                if (status.st_size, status.st_mtime_ns) == (size, mtime_ns) or content_hash(path) == content:
                    return path, status
                problem = InvalidInputError("it has changed since it was added; refresh the collection")
            except InvalidInputError as reason:
                problem = reason
        raise problem


def _parts(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _hashes(db: Connection, contents: Sequence[int]) -> dict[str, int]:
    condition, values = db.among("id", contents)
    rows = db.rows(f"SELECT hash, id FROM content WHERE {condition} ORDER BY id", values)
    return {bytes(key).hex(): number for key, number in rows}


def _owners(db: Connection, ids: Mapping[str, int]) -> dict[str, list[Owner]]:
    condition, values = db.among("content", list(ids.values()))
    keys = {number: key for key, number in ids.items()}
    owners: dict[str, list[Owner]] = {}
    sql = f"SELECT content, path, size, mtime_ns FROM item WHERE {condition} ORDER BY id"
    for number, *owner in db.rows(sql, values):
        owners.setdefault(keys[number], []).append((owner[0], owner[1], owner[2]))
    return owners


def _texts(db: Connection, ids: Mapping[str, int]) -> dict[str, str]:
    condition, values = db.among("content", list(ids.values()))
    keys = {number: key for key, number in ids.items()}
    return {
        keys[number]: text for number, text in db.rows(f"SELECT content, text FROM caption WHERE {condition}", values)
    }
