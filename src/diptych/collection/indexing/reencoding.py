"""Making what is missing: points of a model, from stored features or encoded again, and thumbnails."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from diptych.cluster import open_workers
from diptych.collection.indexing.add_report import AddProgress, Progress, no_progress
from diptych.collection.indexing.encoding import (
    Encoded,
    EncodingTask,
    Source,
    StatedFile,
    encoded,
    put_encoded,
    task_of,
)
from diptych.collection.indexing.file_facts import FileFacts, FileRequest, content_hash, file_status, read_files
from diptych.collection.retriever_protocol import SIDES, Side
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.models import check_same_points
from diptych.collection.store.points import missing_points
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_thumbnails
from diptych.errors import InvalidInputError

# Each batch is a commit, from which an interrupted run goes on.
CONTENTS_AT_ONCE = 256
FILES_AT_ONCE = 64
_LACKING_THUMBNAILS = (
    "SELECT content.id, content.hash, min(item.path) FROM item JOIN content ON content.id = item.content "
    "LEFT JOIN thumbnail ON thumbnail.content = content.id "
    "WHERE item.path IS NOT NULL AND thumbnail.content IS NULL GROUP BY content.id, content.hash"
)

Owner = tuple[str, int, int]
"""The path, size and time of a file as they are stored."""


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


@dataclass
class _Batch:
    """Contents of one side: their ids and what reports call them, by hash, and why some cannot be encoded."""

    side: Side
    ids: Mapping[str, int]
    texts: Mapping[str, str]
    owners: Mapping[str, Sequence[Owner]]
    failures: dict[str, str] = field(default_factory=dict)

    def name(self, key: str) -> str:
        if key in self.texts:
            return self.texts[key]
        return self.owners[key][0][0] if self.owners.get(key) else key


class Reencoding:
    """Makes the points that a model lacks, in batches that are durable one by one.

    Points are made of stored features where there are any. What could not be encoded is remembered, so that another
    :meth:`run` only makes what has come since.
    """

    def __init__(self, store: Store, root: Root, source: Source, scheduler: str | None = None) -> None:
        self._model, retriever = source
        check_same_points(retriever, self._model)
        self._store = store
        self._root = root
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
        if total:
            with open_workers(self._scheduler) as workers:
                for (n_contents, batch), made in encoded(workers, self._tasks(missing), [self._source]):
                    # What others have removed meanwhile has no number any more.
                    put = partial(_put, made=made, source=self._source, contents=list(batch.ids.values()))
                    self._store.write(put)
                    n_made = len(made.points.get((self._model.id, batch.side), ()))
                    self._made[batch.side] += n_made
                    if batch.side == "image":
                        self._read_again += sum(len(rows) for rows in made.features.values())
                    for key, reason in {**batch.failures, **made.failures}.items():
                        self._failed[batch.side].add(batch.ids[key])
                        self._failures[batch.name(key)] = reason
                    done += n_contents
                    (progress or no_progress)(AddProgress(done, total))
        self._seconds += time.perf_counter() - started
        counts = {"pictures": self._made["image"], "captions": self._made["text"], "read_again": self._read_again}
        return ReencodeReport(**counts, failures=dict(self._failures), seconds=self._seconds)

    def _tasks(self, missing: Mapping[Side, Sequence[int]]) -> Iterator[tuple[tuple[int, _Batch], EncodingTask]]:
        """Yield batches with the number of contents that they began with, and what is to be encoded of them."""
        for side in SIDES:
            for start in range(0, len(missing[side]), CONTENTS_AT_ONCE):
                contents = missing[side][start : start + CONTENTS_AT_ONCE]
                with self._store.reading() as db:
                    batch = _batch(db, side, contents)
                    pictures = batch.ids if side == "image" else ()
                    task = task_of(db, [self._source], pictures, batch.texts)
                files: dict[str, StatedFile] = {}
                for key in task.pictures:
                    try:
                        files[key] = self._file_with(key, batch.owners.get(key, ()))
                    except InvalidInputError as reason:
                        batch.failures[key] = str(reason)
                yield (len(contents), batch), task.with_files(files)

    def _file_with(self, content: str, owners: Sequence[Owner]) -> StatedFile:
        """Return a file that still holds this content, with its status from before it was looked at."""
        problem = InvalidInputError("it is stored without a file")
        for stored, size, mtime_ns in owners:
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


def _batch(db: Connection, side: Side, contents: Sequence[int]) -> _Batch:
    ids = _hashes(db, contents)
    keys = {number: key for key, number in ids.items()}
    condition, values = db.among("content", list(ids.values()))
    if side == "text":
        rows = db.rows(f"SELECT content, text FROM caption WHERE {condition}", values)
        return _Batch(side, ids, {keys[number]: text for number, text in rows}, {})
    owners: dict[str, list[Owner]] = {}
    sql = f"SELECT content, path, size, mtime_ns FROM item WHERE path IS NOT NULL AND {condition} ORDER BY id"
    for number, path, size, mtime_ns in db.rows(sql, values):
        owners.setdefault(keys[number], []).append((path, size, mtime_ns))
    return _Batch(side, ids, {}, owners)


def _hashes(db: Connection, contents: Sequence[int]) -> dict[str, int]:
    condition, values = db.among("id", contents)
    rows = db.rows(f"SELECT hash, id FROM content WHERE {condition} ORDER BY id", values)
    return {bytes(key).hex(): number for key, number in rows}


def _put(db: Connection, made: Encoded, source: Source, contents: Sequence[int]) -> None:
    put_encoded(db, made, [source], _hashes(db, contents))


def make_missing_thumbnails(store: Store, root: Root) -> None:
    """Make the thumbnails that items lack, from files that still have the content that was indexed."""
    if not root.is_trusted:
        return
    with store.reading() as db:
        missing = db.rows(_LACKING_THUMBNAILS)
    for start in range(0, len(missing), FILES_AT_ONCE):
        rows = missing[start : start + FILES_AT_ONCE]
        # One read of a video serves all its moments.
        files = {root.picture(path) for _, _, path in rows}
        read = [one for one in read_files([FileRequest(file) for file in files]) if isinstance(one, FileFacts)]
        each = [facts for one in read for facts in (one, *(moment for _, moment in one.moments))]
        made = {facts.content_hash: facts.thumbnail for facts in each if facts.thumbnail}
        jpegs = {number: made[bytes(key).hex()] for number, key, _ in rows if bytes(key).hex() in made}
        if jpegs:
            store.write(partial(_put_thumbnails, jpegs=jpegs))


def _put_thumbnails(db: Connection, jpegs: Mapping[int, bytes]) -> None:
    # Contents that nothing names may have gone meanwhile.
    condition, values = db.among("id", list(jpegs))
    there = db.ids(f"SELECT id FROM content WHERE {condition}", values).tolist()
    put_thumbnails(db, {content: jpegs[content] for content in there})
