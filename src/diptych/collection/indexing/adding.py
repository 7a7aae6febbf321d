"""From records to stored items, batch by batch.

Workers read files and encode what is not in the store yet, some batches ahead. Each batch is then one write of
everything that belongs to it, so that an item that exists is whole. What another process has added, changed or removed
meanwhile is looked at inside that write.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, tee
from pathlib import Path
from typing import Any

from diptych.cluster import Workers, open_workers
from diptych.collection.indexing.add_report import AddProgress, AddReport, Progress, StageWaits, growing_batches
from diptych.collection.indexing.encoding import (
    Encoded,
    EncodingTask,
    Source,
    StatedFile,
    check_unopened,
    encoded,
    put_encoded,
    squares_of,
    task_of,
)
from diptych.collection.indexing.file_facts import (
    Describing,
    FileFacts,
    PendingRecord,
    ReadFile,
    file_status,
    hashed_file,
    read_files,
)
from diptych.collection.indexing.records import record_name, says_nothing_new, text_hash, text_ids
from diptych.collection.item import Item, Record, caption_ids
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import (
    PICTURE,
    TEXT,
    content_ids,
    items_by_content,
    items_by_name,
    items_by_path,
    put_items,
)
from diptych.collection.store.kept import put_thumbnails
from diptych.collection.store.models import followed_models
from diptych.collection.store.store import Store
from diptych.data.picture_files import is_video, moment_path
from diptych.errors import InvalidInputError

VIDEOS_AT_ONCE = 16
PICTURES_AT_ONCE = 64
MAX_PICTURES_AT_ONCE = 512
# A write of more rows keeps others waiting.
TEXTS_AT_ONCE = 2000
QUICK_S = 0.5
LOOKED_UP_AT_ONCE = 2000

Facts = FileFacts | InvalidInputError | None
_SAID = ("content_hash", "captions", "labels", "metadata")


@dataclass
class _Batch:
    """Records whose files have been read, with what encoders were given of them."""

    work: list[PendingRecord]
    facts: list[Facts]
    files: dict[str, StatedFile] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass
class _Written:
    """What a write has done: new items beside those before, and why others were left out."""

    items: list[tuple[PendingRecord, Item]] = field(default_factory=list)
    unchanged: list[tuple[PendingRecord, Item]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)


class Adding:
    """One run that adds records; ``stale`` are items of moments that their videos no longer have."""

    def __init__(
        self,
        store: Store,
        root: Root,
        sources: Callable[[], Sequence[Source]],
        *,
        facts: str,
        scheduler: str | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._load_sources = sources
        self._sources: Sequence[Source] = ()
        self._describing = Describing(facts)
        self._scheduler = scheduler
        self._claimed: set[str] = set()
        # Contents that were given to workers; the store has them when the tasks before are written.
        self._given: set[str] = set()
        self._failures: dict[str, str] = {}
        self._n_records = 0
        self._waits = StageWaits()
        self.stale: list[Item] = []
        self.report = AddReport()

    def add(self, records: Sequence[Record], progress: Progress) -> None:
        """Add records; ``progress`` hears of each batch when it is durable."""
        work = list(self._needing_work(records))
        self._n_records = len(records)
        progress(AddProgress(len(records) - len(work), len(records)))
        while work:
            self._sources = self._load_sources()
            self._given = set()
            work = self._add_part(work, progress)

    def _add_part(self, work: Sequence[PendingRecord], progress: Progress) -> list[PendingRecord]:
        """Add records, all or until another process adds a model; return those that are left."""
        left = {id(one.record): one for one in work}
        # What is not encoded goes first, in large batches.
        known, fresh = ([one for one in work if (one.status is None) == is_known] for is_known in (True, False))
        with open_workers(self._scheduler, ahead=True) as workers:
            tasks = self._tasks(chain(_batches(known), _batches(fresh)), workers)
            results = encoded(workers, tasks, self._sources)
            for batch, made in self._waits.timed("encoding", results):
                self._failures |= made.failures
                with self._waits.stage("writing"):
                    written = self._store.write(partial(self._write_batch, batch=batch, made=made))
                if written is None:
                    break
                self._count(written)
                for one in batch.work:
                    left.pop(id(one.record), None)
                stored = tuple(item.id for _, item in (*written.items, *written.unchanged))
                progress(AddProgress(self._n_records - len(left), self._n_records, stored, self._waits.longest))
        return list(left.values())

    # What needs work

    def _needing_work(self, records: Sequence[Record]) -> Iterator[PendingRecord]:
        for start in range(0, len(records), LOOKED_UP_AT_ONCE):
            part = records[start : start + LOOKED_UP_AT_ONCE]
            paths = {id(one): self._root.given(one.path) for one in part if one.path is not None}
            with self._store.reading() as db:
                texts = text_ids(db, part)
                names = [one.id or texts.get(tuple(one.captions or ()), "") for one in part]
                by_name = items_by_name(db, filter(None, names))
                by_path = items_by_path(db, map(self._root.stored, _storable(paths.values())))
            for record, name in zip(part, names, strict=True):
                path = paths.get(id(record))
                at_path = None if path is None else by_path.get(self._root.stored(path), (0, None))[1]
                named = by_name.get(name, (0, None))[1]
                try:
                    work = self._look_at(record, path, name, at_path, named)
                except InvalidInputError as reason:
                    self.report.skipped[record_name(record)] = str(reason)
                    continue
                if work is None:
                    self.report.unchanged += 1
                else:
                    yield work

    def _look_at(
        self, record: Record, path: Path | None, name: str, at_path: Item | None, named: Item | None
    ) -> PendingRecord | None:
        if path is None:
            self._claim(name)
            return None if named is not None and says_nothing_new(record, named) else PendingRecord(record, named)
        status = file_status(path)
        self._claim(*filter(None, (str(path), record.id)))
        _check_free(record, at_path)
        known = at_path if record.id is None else named
        same_file = known is not None and known == at_path and _is_stored(status, known)
        is_due = known is not None and same_file and self._describing.is_due(path, known)
        if known is not None and same_file and not is_due and says_nothing_new(record, known):
            return None
        # What is said of a video is said of all its moments, which have to be found again.
        is_whole = not same_file or is_video(path)
        return PendingRecord(record, known, path, status if is_whole else None, is_due and not is_whole)

    def _claim(self, *names: str) -> None:
        if not self._claimed.isdisjoint(names):
            raise InvalidInputError("it is named twice; name each path and each id once")
        self._claimed.update(names)

    # Reading and encoding

    def _tasks(
        self, batches: Iterable[Sequence[PendingRecord]], workers: Workers
    ) -> Iterator[tuple[_Batch, EncodingTask]]:
        """Yield batches whose files have been read, with what is to be encoded of them."""
        batches, again = tee(batches)
        squares = () if workers.elsewhere else squares_of(self._sources)
        requests = (self._describing.requests(batch, squares) for batch in again)
        reads = self._waits.timed("reading", workers.map(read_files, requests))
        for work, files in zip(batches, reads, strict=True):
            batch = self._with_moments(*_with_facts(work, files, workers))
            batch.facts = self._describing.completed(batch.facts)
            batch.files = {
                found.content_hash: (hashed_file(one.path, one.status, found), one.status)
                for one, found in zip(batch.work, batch.facts, strict=True)
                if isinstance(found, FileFacts) and one.path is not None and one.status is not None
            }
            self.report.unclear |= {
                os.fspath(one.path or ""): found.trouble
                for one, found in zip(batch.work, batch.facts, strict=True)
                if isinstance(found, FileFacts) and found.trouble
            }
            batch.texts = {text_hash(text): text for one in batch.work for text in one.record.captions or ()}
            with self._store.reading() as db:
                task = task_of(db, self._sources, batch.files, batch.texts, self._given)
            self._given.update(batch.files, batch.texts)
            yield batch, task

    def _with_moments(self, work: Sequence[PendingRecord], facts: Sequence[Facts]) -> _Batch:
        """Return a batch with a record of its own for every moment of its videos."""
        whole = _Batch([], [])
        for one, fact in zip(work, facts, strict=True):
            whole.work.append(one)
            whole.facts.append(fact)
            if isinstance(fact, FileFacts) and one.path is not None and is_video(one.path):
                moments = {moment_path(one.path, seconds): facts for seconds, facts in fact.moments}
                before = self._moments_of(one.path)
                stored = {self._root.stored(path): path for path in moments}
                whole.work += [_moment(one, path, before.get(name)) for name, path in stored.items()]
                whole.facts += moments.values()
                self.stale += [item for name, item in before.items() if name not in stored]
        return whole

    def _moments_of(self, video: Path) -> dict[str, Item]:
        beginning = f"{self._root.stored(video)}#t"
        with self._store.reading() as db:
            # The sign after "=" ends the range of what begins with it.
            sql = "SELECT path FROM item WHERE path >= ? AND path < ?"
            paths = [path for (path,) in db.rows(sql, (f"{beginning}=", f"{beginning}>"))]
            return {path: item for path, (_, item) in items_by_path(db, paths).items()}

    # Writing

    def _write_batch(self, db: Connection, batch: _Batch, made: Encoded) -> _Written | None:
        """Write a batch in one transaction; None, and nothing, where a model has come that it is not encoded for."""
        if not has_all_models(db, self._sources):
            return None
        written = _Written()
        work = self._as_it_is_now(db, batch, written)
        pictures = [key for key in batch.files if key not in self._failures]
        ids = content_ids(db, pictures, PICTURE)
        ids |= content_ids(db, [key for key in batch.texts if key not in self._failures], TEXT)
        put_encoded(db, made, self._sources, ids)
        self._put_new_thumbnails(db, batch, ids)
        for one, found, name in work:
            item = self._item(one, found, name)
            reasons = [self._failures[key] for key in _contents(one, item) if key in self._failures]
            if reasons:
                written.skipped[record_name(one.record)] = reasons[0]
            elif item == one.known:
                written.unchanged.append((one, item))
            else:
                written.items.append((one, item))
        items = [item for _, item in written.items]
        numbers = put_items(db, items, contents=ids)
        self._note_copies(db, dict(zip((item.id for item in items), numbers, strict=True)), written)
        return written

    def _as_it_is_now(
        self, db: Connection, batch: _Batch, written: _Written
    ) -> list[tuple[PendingRecord, FileFacts | None, str]]:
        """Return the records that can be written, with their items as the store has them in this moment, and names."""
        texts = text_ids(db, (one.record for one in batch.work))
        names = [_name_of(one, texts) for one in batch.work]
        paths = [None if one.path is None else self._root.stored(one.path) for one in batch.work]
        by_name = {name: item for name, (_, item) in items_by_name(db, filter(None, names)).items()}
        by_path = {path: item for path, (_, item) in items_by_path(db, filter(None, paths)).items()}
        fresh = [one.content_hash for one in batch.facts if isinstance(one, FileFacts)]
        twins = {key: [item for _, item in items] for key, items in items_by_content(db, fresh).items()}
        claimed = {one.known.id for one in batch.work if one.known is not None}
        found: list[tuple[PendingRecord, FileFacts | None, str]] = []
        for one, facts, name, path in zip(batch.work, batch.facts, names, paths, strict=True):
            at_path = by_path.get(path or "")
            known = at_path if path is not None and one.record.id is None else by_name.get(name)
            if known is None and one.status is None:
                # Removed or renamed by another process since, and its file was not read: it is as it was known.
                known = by_name.get(one.known.id, one.known) if one.known is not None else None
            if isinstance(facts, FileFacts) and known is None and one.record.id is None:
                # An item with this content whose file is gone: the file was renamed.
                free = (item for item in twins.get(facts.content_hash, ()) if item.id not in claimed and item.path)
                known = next((item for item in free if self._root.is_missing(str(item.path))), None)
            try:
                if isinstance(facts, InvalidInputError):
                    raise facts
                _check_free(one.record, at_path)
            except InvalidInputError as reason:
                written.skipped[record_name(one.record)] = str(reason)
                continue
            if known is not None:
                claimed.add(known.id)
            found.append((replace(one, known=known), facts, name if path is None or one.record.id else ""))
        return found

    def _item(self, work: PendingRecord, found: FileFacts | None, name: str) -> Item:
        record, known = work.record, work.known
        said: dict[str, Any] = {}
        if work.path is not None and work.status is not None and found is not None:
            said |= {"path": self._root.stored(work.path), "content_hash": found.content_hash}
            said |= {"size": work.status.st_size, "mtime_ns": work.status.st_mtime_ns}
            said |= {"width": found.width, "height": found.height}
        if work.path is not None and found is not None:
            stamp, (folder, _, _) = self._describing.stamp(work.path), self._root.stored(work.path).rpartition("/")
            said["facts"] = {**found.said, "folder": folder} if stamp and folder else found.said
            said["facts_read"] = stamp
        if known is None:
            said["id"] = name or secrets.token_hex(8)
        said |= said_of(record, known, said.get("id", ""))
        return replace(known, **said) if known is not None else Item(**{"path": None, "content_hash": None} | said)

    def _put_new_thumbnails(self, db: Connection, batch: _Batch, ids: Mapping[str, int]) -> None:
        jpegs = {
            ids[one.content_hash]: one.thumbnail
            for one in batch.facts
            if isinstance(one, FileFacts) and one.thumbnail and one.content_hash in ids
        }
        condition, values = db.among("content", list(jpegs))
        there = set(db.ids(f"SELECT content FROM thumbnail WHERE {condition}", values).tolist())
        put_thumbnails(db, {content: jpeg for content, jpeg in jpegs.items() if content not in there})

    def _note_copies(self, db: Connection, numbers: Mapping[str, int], written: _Written) -> None:
        """Note for each added picture the first one before it with the same content."""
        added = [item for one, item in written.items if one.known is None and item.content_hash is not None]
        twins = items_by_content(db, {str(item.content_hash) for item in added})
        for item in added:
            first, twin = twins[str(item.content_hash)][0]
            if first < numbers[item.id] and item.path is not None and twin.path is not None:
                written.copies[item.path] = twin.path

    def _count(self, written: _Written) -> None:
        report = self.report
        report.skipped |= written.skipped
        report.duplicates |= written.copies
        report.unchanged += len(written.unchanged)
        for work, item in written.items:
            before = work.known
            if before is None:
                report.added += 1
            elif before.path != item.path:
                report.renamed += 1
            elif all(getattr(before, name) == getattr(item, name) for name in _SAID):
                report.unchanged += 1
                report.described += before.facts != item.facts
            else:
                report.updated += 1


def has_all_models(db: Connection, sources: Sequence[Source]) -> bool:
    """Return True if what was encoded with some models is all that new items need."""
    return {model.id for model in followed_models(db)} <= {model.id for model, _ in sources}


def said_of(record: Record, known: Item | None, item_id: str = "") -> dict[str, Any]:
    """Return what a record changes of an item: what is None is left, and captions that stay keep their ids."""
    said: dict[str, Any] = {}
    if record.captions is not None and (known is None or tuple(record.captions) != known.captions):
        said["captions"] = tuple(record.captions)
        said["caption_ids"] = caption_ids(known, item_id, record.captions)
    if record.labels is not None:
        said["labels"] = tuple(record.labels)
    if record.metadata is not None:
        said["metadata"] = record.metadata
    return said


def _check_free(record: Record, at_path: Item | None) -> None:
    if record.id is not None and record.path is not None and at_path is not None and at_path.id != record.id:
        raise InvalidInputError(f"it is in the collection as item {at_path.id}; remove that one first")


def _storable(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield paths that a database can be asked for: names of another encoding are in none."""
    for path in paths:
        try:
            os.fspath(path).encode()
        except UnicodeEncodeError:
            continue
        yield path


def _batches(work: Sequence[PendingRecord]) -> Iterator[Sequence[PendingRecord]]:
    if any(one.path is not None and is_video(one.path) for one in work):
        return growing_batches(work, VIDEOS_AT_ONCE, VIDEOS_AT_ONCE, QUICK_S)
    if any(one.status is not None for one in work):
        return growing_batches(work, PICTURES_AT_ONCE, MAX_PICTURES_AT_ONCE, QUICK_S)
    return growing_batches(work, TEXTS_AT_ONCE, TEXTS_AT_ONCE, QUICK_S)


def _with_facts(
    batch: Sequence[PendingRecord], reads: Iterable[ReadFile], workers: Workers
) -> tuple[list[PendingRecord], list[Facts]]:
    """Return a batch with the facts of its files and their status right before they were read."""
    left, matched, facts = iter(reads), [], list[Facts]()
    for work in batch:
        read = next(left) if work.path and work.reads else None
        if isinstance(read, InvalidInputError) and work.path is not None:
            check_unopened(workers, work.path, str(read))
        matched.append(replace(work, status=read[0]) if isinstance(read, tuple) and work.status else work)
        facts.append(read[1] if isinstance(read, tuple) else read)
    return matched, facts


def _moment(video: PendingRecord, path: Path, known: Item | None) -> PendingRecord:
    # Captions stay with the beginning: a text that all moments share would be found as often as there are moments.
    record = Record(path, labels=video.record.labels, metadata=video.record.metadata)
    return PendingRecord(record, known, path, video.status, is_named=False)


def _name_of(work: PendingRecord, texts: Mapping[tuple[str, ...], str]) -> str:
    if work.record.id is not None:
        return work.record.id
    if work.path is None:
        return texts[tuple(work.record.captions or ())]
    return "" if work.known is None else work.known.id


def _contents(work: PendingRecord, item: Item) -> list[str]:
    """Return the contents of an item that this run encodes."""
    picture = [item.content_hash] if work.status is not None and item.content_hash is not None else []
    return picture + [text_hash(text) for text in item.captions]


def _is_stored(status: os.stat_result, item: Item) -> bool:
    return (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns)
