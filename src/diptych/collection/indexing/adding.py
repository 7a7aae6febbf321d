"""Adding to a collection, from top to bottom: records are compared, read, encoded and written, batch by batch.

Workers read files and encode what is not in the store yet, some batches ahead of the write. Each write is one
transaction of everything that belongs to its batch, so that an item that exists is whole; an interrupted run goes on
with what is not stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from diptych.cluster import Workers, open_workers
from diptych.collection.indexing.add_report import AddProgress, AddReport, Progress, StageWaits
from diptych.collection.indexing.encoding import EncodingTask, Source, check_opened, encoded, squares_of, task_of
from diptych.collection.indexing.file_facts import FactsReader, FileFacts, ReadFile, read_files
from diptych.collection.indexing.records import PendingRecord, pending_records
from diptych.collection.indexing.writing import Batch, ReadRecord, write_batch
from diptych.collection.item import Item, Record
from diptych.collection.root import Root
from diptych.collection.store.items import items_by_path
from diptych.collection.store.store import Store
from diptych.data.picture_files import is_video, moment_path
from diptych.devices import uses_accelerator
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.reading_once import Square

VIDEOS_AT_ONCE = 16
PICTURES_AT_ONCE = 64
MAX_PICTURES_AT_ONCE = 512
MIN_FILES_FOR_PROCESSES = 256
# A write of more rows keeps others waiting.
TEXTS_AT_ONCE = 2000
QUICK_S = 0.5
T = TypeVar("T")


class Adding:
    """One run that adds records; ``stale`` are items of moments that their videos no longer have."""

    def __init__(
        self,
        store: Store,
        root: Root,
        load_sources: Callable[[], Sequence[Source]],
        *,
        facts: str,
        scheduler: str | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._load_sources = load_sources
        self._facts = FactsReader(facts)
        self._scheduler = scheduler
        self._waits = StageWaits()
        self.stale: list[Item] = []
        self.report = AddReport()

    def add(self, records: Sequence[Record], progress: Progress) -> None:
        """Add records; ``progress`` hears of each batch when it is durable."""
        work = list(pending_records(self._store, self._root, self._facts, records, self.report))
        n_done = len(records) - len(work)
        progress(AddProgress(n_done, len(records)))
        # What needs no file read goes first, in large batches.
        work.sort(key=lambda one: one.reads == "all")
        while work:
            n_written = self._run(work, progress, n_done, len(records))
            # Another process has added a model: the rest is encoded for it, too.
            work, n_done = work[n_written:], n_done + n_written

    def _run(self, work: Sequence[PendingRecord], progress: Progress, n_done: int, total: int) -> int:
        """Read, encode and write, all or until another process adds a model; return how many records are written."""
        sources, n_written = self._load_sources(), 0
        with open_workers(self._scheduler, ahead=True) as workers:
            tasks = self._tasks(workers, _batches(work, workers), sources)
            results = encoded(workers, tasks, sources)
            for (n_records, batch), made in self._waits.timed("encoding", results):
                write = partial(write_batch, root=self._root, batch=batch, made=made, sources=sources)
                with self._waits.stage("writing"):
                    written = self._store.write(write)
                if written is None:
                    break
                written.count_in(self.report)
                n_written += n_records
                progress(AddProgress(n_done + n_written, total, written.stored, self._waits.longest))
        return n_written

    def _tasks(
        self, workers: Workers, batches: Iterable[Sequence[PendingRecord]], sources: Sequence[Source]
    ) -> Iterator[tuple[tuple[int, Batch], EncodingTask]]:
        """Yield batches whose files have been read, each with the number of its records and what is to be encoded."""
        squares = () if workers.elsewhere else squares_of(sources)
        for read in self._waits.timed("reading", workers.map(read_batch, batches, squares)):
            records: list[ReadRecord] = []
            for one in read:
                if isinstance(one.facts, InvalidInputError) and one.pending.path is not None:
                    check_opened(workers, one.pending.path, str(one.facts))
                if isinstance(one.facts, FileFacts):
                    one = replace(one, facts=self._facts.completed(one.facts))
                records += [one, *self._moments(one)]
            self.report.unclear |= {
                str(one.pending.path): one.facts.trouble
                for one in records
                if isinstance(one.facts, FileFacts) and one.facts.trouble
            }
            batch = Batch(records)
            with self._store.reading() as db:
                task = task_of(db, sources, batch.files, batch.texts)
            yield (len(read), batch), task.with_files(batch.files)

    def _moments(self, video: ReadRecord) -> Iterator[ReadRecord]:
        """Yield a record of its own for every further moment of a video."""
        pending, facts = video.pending, video.facts
        if pending.path is None or not is_video(pending.path) or not isinstance(facts, FileFacts):
            return
        moments = {moment_path(pending.path, seconds): moment for seconds, moment in facts.moments}
        before = self._moments_of(pending.path)
        self.stale += [item for name, item in before.items() if name not in map(self._root.stored, moments)]
        for path, moment in moments.items():
            # Captions stay with the beginning: a text of all moments would be found as often as there are moments.
            record = Record(path, labels=pending.record.labels, metadata=pending.record.metadata)
            known = before.get(self._root.stored(path))
            made = replace(pending, record=record, known=known, path=path)
            yield ReadRecord(made, self._facts.completed(moment))

    def _moments_of(self, video: Path) -> dict[str, Item]:
        beginning = f"{self._root.stored(video)}#t"
        with self._store.reading() as db:
            # The sign after "=" ends the range of what begins with it.
            sql = "SELECT path FROM item WHERE path >= ? AND path < ?"
            paths = [path for (path,) in db.rows(sql, (f"{beginning}=", f"{beginning}>"))]
            return {path: item for path, (_, item) in items_by_path(db, paths).items()}


def read_batch(batch: Sequence[PendingRecord], squares: tuple[Square, ...]) -> list[ReadRecord]:
    """Read the files of a batch, those that need it."""
    requests = [one.request for one in batch]
    files = [replace(request, squares=squares) for request in requests if request is not None]
    # A graphics card is faster than the threads of one interpreter; a few files are not worth starting processes.
    in_processes = bool(squares) and len(files) >= MIN_FILES_FOR_PROCESSES and uses_accelerator()
    read: Iterator[ReadFile] = iter(read_files(files, in_processes=in_processes))
    return [
        ReadRecord(one, None if request is None else next(read)) for one, request in zip(batch, requests, strict=True)
    ]


def _batches(work: Sequence[PendingRecord], workers: Workers) -> Iterator[Sequence[PendingRecord]]:
    n_light = sum(one.reads != "all" for one in work)
    for some in (work[:n_light], work[n_light:]):
        size = most = TEXTS_AT_ONCE
        if any(one.path is not None and is_video(one.path) for one in some):
            size = most = VIDEOS_AT_ONCE
        elif any(one.reads == "all" for one in some):
            # Tasks of a cluster stay small, so that none of its workers waits long for another with the last one.
            size, most = PICTURES_AT_ONCE, PICTURES_AT_ONCE if workers.elsewhere else MAX_PICTURES_AT_ONCE
        yield from growing_batches(some, size, most, QUICK_S)


def growing_batches(items: Sequence[T], size: int, most: int, quick_seconds: float) -> Iterator[Sequence[T]]:
    """Yield batches that grow, up to a largest size, while they take next to no time.

    >>> list(growing_batches("abcdefghi", 2, 4, quick_seconds=60))
    ['ab', 'cdef', 'ghi']
    """
    start = 0
    while start < len(items):
        asked = time.perf_counter()
        yield items[start : start + size]
        start += size
        if time.perf_counter() - asked < quick_seconds:
            size = min(2 * size, most)
