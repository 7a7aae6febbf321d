"""From records to stored items."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, tee
from pathlib import Path
from typing import Any

from diptych.cluster import Workers, open_workers
from diptych.collection.browse.live_items import LiveItems, text_hash, text_item_id
from diptych.collection.changes.add_report import AddProgress, AddReport, Progress, StageWaits, growing_batches
from diptych.collection.changes.encoding import (
    Encoded,
    Encoding,
    EncodingTask,
    check_unopened,
    encoded,
    squares_of,
)
from diptych.collection.changes.file_facts import (
    Describing,
    FileFacts,
    PendingRecord,
    ReadFile,
    file_status,
    hashed_file,
    read_files,
)
from diptych.collection.storage.item import Item, Record, caption_ids
from diptych.collection.storage.layout import Root
from diptych.collection.storage.retriever_protocol import SIDES, Side
from diptych.collection.storage.store import Store, points_table
from diptych.data.picture_files import is_video, moment_path
from diptych.errors import InvalidInputError

Facts = FileFacts | InvalidInputError | None

_VIDEOS_AT_ONCE, _PICTURES_AT_ONCE, _TEXTS_AT_ONCE = 16, 64, 2048
# Pictures are held while they wait, texts are not.
_MOST_PICTURES_AT_ONCE, _MOST_TEXTS_AT_ONCE, _QUICK_PICTURES, _QUICK_TEXTS = 512, 1 << 14, 0.5, 2.0
# Room between two items for the order of their captions.
_TICK_NS = 1000
_SAID = ("content_hash", "captions", "labels", "metadata")


class Adding:
    """Brings records into the store, batch by batch: features, points, thumbnails, captions, and then the items.

    So an item that exists is whole, and a batch is acknowledged when its items are written. Workers read files and
    encode what is not in the store yet, some batches ahead; here batches are decided about and written, in their order.
    """

    def __init__(
        self,
        store: Store,
        root: Root,
        encodings: Callable[[], Sequence[Encoding]],
        items: LiveItems,
        now_ns: int,
        facts: str = "all",
        scheduler: str | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._make_encodings = encodings
        self._known = items
        self._describing = Describing(facts)
        self._scheduler = scheduler
        # Times only grow: readers find what has changed by them.
        self._clock = now_ns
        # What this run has written so far: items by id and by content, and the paths and ids it has dealt with.
        self._written: dict[str, Item] = {}
        self._written_contents: dict[str, list[Item]] = {}
        self._claimed: set[str] = set()
        # What has been given to workers; the store has it when those after it are written.
        self._given: dict[Side, set[str]] = {side: set() for side in SIDES}
        # Items of moments that their videos have no longer.
        self.stale: list[Item] = []
        self._waits = StageWaits()
        self.report = AddReport()

    def add(self, records: Sequence[Record], progress: Progress, is_awaited: Callable[[], bool]) -> list[Record]:
        """Add records, all of them or until somebody waits to write; return those that are left then."""
        work = list(self._needing_work(records))
        left = {id(one.record): one.record for one in work}
        done = len(records) - len(work)
        progress(AddProgress(done, len(records)))
        if work:
            # What is not encoded goes first, in large batches.
            known, fresh = ([one for one in work if (one.status is None) == is_known] for is_known in (True, False))
            batches = chain(_batches(known), _batches(fresh))
            with open_workers(self._scheduler, ahead=True) as workers:
                encodings = self._make_encodings()
                tasks = self._tasks(batches, encodings, workers)
                results = encoded(workers, tasks, [encoding.source for encoding in encodings])
                for (batch, facts), made in self._waits.timed("encoding", results):
                    with self._waits.stage("writing"):
                        stored = self._batch(batch, facts, encodings, made)
                    done += sum(left.pop(id(one.record), None) is not None for one in batch)
                    progress(AddProgress(done, len(records), stored, self._waits.longest))
                    if left and is_awaited():
                        break
        return list(left.values())

    def change(self, changes: Sequence[tuple[Item, Record]]) -> None:
        """Give stored items the captions, labels and metadata of records, without looking at their files."""
        changed = [(one, self._item(one, None)) for one in (PendingRecord(record, item) for item, record in changes)]
        for encoding in self._make_encodings():
            for reason in encoding.texts(_texts(changed)).values():
                raise InvalidInputError(reason)
        self._write(changed, [])

    def _needing_work(self, records: Sequence[Record]) -> Iterator[PendingRecord]:
        for record in records:
            try:
                work = self._look_at(record)
            except InvalidInputError as reason:
                self.report.skipped[record_name(record)] = str(reason)
                continue
            if work is None:
                self.report.unchanged += 1
            else:
                yield work

    def _look_at(self, record: Record) -> PendingRecord | None:
        if record.path is None:
            name = record.id or self._text_id(record)
            self._claim(name)
            known = self._known.get(name)
            return None if known is not None and _says_nothing_new(record, known) else PendingRecord(record, known)
        path = self._root.given(record.path)
        status = file_status(path)
        at_path = self._known.at_path(self._root.stored(path))
        self._claim(*filter(None, (str(path), record.id)))
        known = at_path if record.id is None else self._known.get(record.id)
        if record.id is not None and at_path is not None and at_path.id != record.id:
            raise InvalidInputError(f"it is in the collection as item {at_path.id}; remove that one first")
        same_file = known is not None and known == at_path and _is_stored(status, known)
        is_due = known is not None and same_file and self._describing.is_due(path, known)
        if known is not None and same_file and not is_due and _says_nothing_new(record, known):
            return None
        # What is said of a video is said of all its moments, which have to be found again.
        is_whole = not same_file or is_video(path)
        return PendingRecord(record, known, path, status if is_whole else None, is_due and not is_whole)

    def _text_id(self, record: Record) -> str:
        return text_item_id(tuple(record.captions or ()), self._known.get)

    def _claim(self, *names: str) -> None:
        if not self._claimed.isdisjoint(names):
            raise InvalidInputError("it is named twice; name each path and each id once")
        self._claimed.update(names)

    def _tasks(
        self, batches: Iterable[Sequence[PendingRecord]], encodings: Sequence[Encoding], workers: Workers
    ) -> Iterator[tuple[tuple[list[PendingRecord], list[Facts]], EncodingTask]]:
        """Yield batches whose files have been read, with what is to be encoded of them."""
        batches, again = tee(batches)
        squares = () if workers.elsewhere else squares_of(encodings)
        requests = (self._describing.requests(batch, squares) for batch in again)
        reads = self._waits.timed("reading", workers.map(read_files, requests))
        for batch, files in zip(batches, reads, strict=True):
            matched, facts = self._with_moments(*_with_facts(batch, files, workers))
            facts = self._describing.completed(facts)
            yield (matched, facts), self._task(matched, facts, encodings)

    def _with_moments(
        self, batch: Sequence[PendingRecord], facts: Sequence[Facts]
    ) -> tuple[list[PendingRecord], list[Facts]]:
        """Return a batch with a record of its own for every moment of its videos."""
        whole: list[PendingRecord] = []
        found: list[Facts] = []
        for work, fact in zip(batch, facts, strict=True):
            whole.append(work)
            found.append(fact)
            if isinstance(fact, FileFacts) and work.path is not None and is_video(work.path):
                moments = {moment_path(work.path, seconds): facts for seconds, facts in fact.moments}
                whole += [self._moment(work, path) for path in moments]
                found += moments.values()
                if work.known is not None:
                    self._note_stale(work.path, {self._root.stored(path) for path in moments})
        return whole, found

    def _moment(self, video: PendingRecord, path: Path) -> PendingRecord:
        # Captions stay with the beginning: a text that all moments share would be found as often as there are moments.
        record = Record(path, labels=video.record.labels, metadata=video.record.metadata)
        return PendingRecord(record, self._known.at_path(self._root.stored(path)), path, video.status, is_named=False)

    def _note_stale(self, video: Path, there: set[str]) -> None:
        before = f"{self._root.stored(video)}#t="
        self.stale += self._known.with_paths(lambda path: path.startswith(before) and path not in there)

    def _task(
        self, batch: Sequence[PendingRecord], facts: Sequence[Facts], encodings: Sequence[Encoding]
    ) -> EncodingTask:
        files = {
            found.content_hash: (hashed_file(work.path, work.status, found), work.status)
            for work, found in zip(batch, facts, strict=True)
            if isinstance(found, FileFacts) and work.path is not None and work.status is not None
        }
        texts = {text_hash(text): text for work in batch for text in _captions(work)}
        lacking: dict[str, list[str]] = {}
        contents: dict[Side, Iterable[str]] = {"image": files, "text": texts}
        for side, keys in contents.items():
            fresh = [key for key in keys if key not in self._given[side]]
            self._given[side].update(fresh)
            for encoding in encodings:
                lacking[points_table(encoding.source[0], side)] = encoding.from_features(side, fresh)
        return EncodingTask.of(files, texts, lacking)

    def _batch(
        self, batch: Sequence[PendingRecord], facts: Sequence[Facts], encodings: Sequence[Encoding], made: Encoded
    ) -> tuple[str, ...]:
        items = self._items(batch, facts)
        files = {
            item.content_hash: (work.path, status)
            for work, item in items
            if item.content_hash is not None
            and work.path is not None
            and (status := work.status or _stored_status(work.path, item)) is not None
        }
        # Items are written after this, so that an item that exists is found with every retriever. Retrievers that share
        # an encoder share its features: the first stores them, the others take them from there.
        failures: dict[str, str] = {}
        for encoding in encodings:
            failures |= encoding.pictures({key: file for key, file in files.items() if key not in failures}, made)
        for work, item in items:
            if item.content_hash in failures:
                self.report.skipped[os.fspath(work.path or "")] = failures[item.content_hash]
        kept = [(work, item) for work, item in items if item.content_hash not in failures]
        refused: dict[str, str] = {}
        for encoding in encodings:
            refused |= encoding.texts(_texts(kept), made)
        kept = [(work, item) for work, item in kept if not self._refuses(work, item, refused)]
        self._write(kept, facts)
        for work, item in kept:
            self._count(work, item)
            self._written[item.id] = item
            self._written_contents.setdefault(item.content_hash or "", []).append(item)
        return tuple(item.id for _, item in kept)

    def _refuses(self, work: PendingRecord, item: Item, refused: Mapping[str, str]) -> bool:
        reasons = [refused[key] for key in map(text_hash, item.captions) if key in refused]
        if reasons:
            self.report.skipped[record_name(work.record)] = reasons[0]
        return bool(reasons)

    def _items(self, batch: Sequence[PendingRecord], facts: Sequence[Facts]) -> list[tuple[PendingRecord, Item]]:
        items, claimed = [], set[str]()
        for work, found in zip(batch, facts, strict=True):
            if isinstance(found, InvalidInputError):
                self.report.skipped[os.fspath(work.path or "")] = str(found)
                continue
            if work.known is None and found is not None:
                # An item with this content whose file is gone: the file was renamed.
                free = (item for item in self._twins(found.content_hash) if item.id not in claimed)
                moved = next((item for item in free if item.path and self._root.is_missing(item.path)), None)
                if moved is not None:
                    claimed.add(moved.id)
                    work = replace(work, known=moved)
            items.append((work, self._item(work, found)))
        return items

    def _twins(self, content: str) -> list[Item]:
        before = self._known.find("content", content)
        return [item for item in before if item.id not in self._written] + self._written_contents.get(content, [])

    def _item(self, work: PendingRecord, found: FileFacts | None) -> Item:
        record, known = work.record, work.known
        self._clock = max(time.time_ns(), self._clock + _TICK_NS)
        said: dict[str, Any] = {"updated_ns": self._clock}
        if work.path is not None and work.status is not None and found is not None:
            said |= {"path": self._root.stored(work.path), "content_hash": found.content_hash}
            said |= {"size": work.status.st_size, "mtime_ns": work.status.st_mtime_ns}
            said |= {"width": found.width, "height": found.height}
        if work.path is not None and found is not None:
            said |= self._said_of_itself(work.path, found)
        if known is None:
            said["id"] = record.id or (self._text_id(record) if work.path is None else secrets.token_hex(8))
        if record.captions is not None and (known is None or tuple(record.captions) != known.captions):
            said["captions"] = tuple(record.captions)
            said["caption_ids"] = caption_ids(known, said.get("id", ""), said["captions"])
        if record.labels is not None:
            said["labels"] = tuple(record.labels)
        if record.metadata is not None:
            said["metadata"] = record.metadata
        if known is not None:
            return replace(known, **said)
        return Item(**{"path": None, "content_hash": None, "added_ns": self._clock} | said)

    def _said_of_itself(self, path: Path, found: FileFacts) -> dict[str, Any]:
        if found.trouble:
            self.report.unclear[os.fspath(path)] = found.trouble
        stamp, (folder, _, _) = self._describing.stamp(path), self._root.stored(path).rpartition("/")
        return {"facts": {**found.said, "folder": folder} if stamp and folder else found.said, "facts_read": stamp}

    def _write(self, items: Sequence[tuple[PendingRecord, Item]], facts: Sequence[Facts]) -> None:
        used = {item.content_hash for _, item in items}
        shown = [fact for fact in facts if isinstance(fact, FileFacts) and fact.thumbnail and fact.content_hash in used]
        new = {fact.content_hash: fact.thumbnail for fact in shown if not self._twins(fact.content_hash)}
        self._store.add_thumbnails(new)
        self._store.add_captions(
            [
                (caption_id, item.id, text)
                for work, item in items
                for caption_id, text in zip(item.caption_ids, item.captions, strict=True)
                if work.known is None or caption_id not in work.known.caption_ids
            ]
        )
        # One commit: readers ask for what is later than the latest they know, and a second one would come too late.
        known = [work.known for work, _ in items if work.known is not None]
        self._store.put_items([item for _, item in items], known)

    def _count(self, work: PendingRecord, item: Item) -> None:
        before = work.known
        if before is None:
            self.report.added += 1
            twins = [] if item.content_hash is None else self._twins(item.content_hash)
            if item.path is not None and twins and twins[0].path is not None:
                self.report.duplicates[item.path] = twins[0].path
        elif before.path != item.path:
            self.report.renamed += 1
        elif all(getattr(before, name) == getattr(item, name) for name in _SAID):
            self.report.unchanged += 1
            self.report.described += before.facts != item.facts
        else:
            self.report.updated += 1


def _batches(work: Sequence[PendingRecord]) -> Iterator[Sequence[PendingRecord]]:
    if any(one.path is not None and is_video(one.path) for one in work):
        return growing_batches(work, _VIDEOS_AT_ONCE, _VIDEOS_AT_ONCE, _QUICK_PICTURES)
    if any(one.status is not None for one in work):
        return growing_batches(work, _PICTURES_AT_ONCE, _MOST_PICTURES_AT_ONCE, _QUICK_PICTURES)
    return growing_batches(work, _TEXTS_AT_ONCE, _MOST_TEXTS_AT_ONCE, _QUICK_TEXTS)


def _with_facts(
    batch: Sequence[PendingRecord], reads: Iterable[ReadFile], workers: Workers
) -> tuple[list[PendingRecord], list[Facts]]:
    """Return a batch with the facts of its files and their status right before they were read."""
    left, matched, facts = iter(reads), [], []
    for work in batch:
        read = next(left) if work.path and work.reads else None
        if isinstance(read, InvalidInputError) and work.path is not None:
            check_unopened(workers, work.path, str(read))
        matched.append(replace(work, status=read[0]) if isinstance(read, tuple) and work.status else work)
        facts.append(read[1] if isinstance(read, tuple) else read)
    return matched, facts


def _texts(items: Iterable[tuple[PendingRecord, Item]]) -> dict[str, str]:
    return {text_hash(text): text for _, item in items for text in item.captions}


def _captions(work: PendingRecord) -> Sequence[str]:
    said = work.record.captions
    return said if said is not None else () if work.known is None else work.known.captions


def _stored_status(path: Path, item: Item) -> os.stat_result | None:
    """Return the status of a file that is not to be hashed, None if it is no longer the stored one."""
    try:
        status = file_status(path)
    except InvalidInputError:
        return None
    return status if _is_stored(status, item) else None


def _is_stored(status: os.stat_result, item: Item) -> bool:
    return (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns)


def _says_nothing_new(record: Record, item: Item) -> bool:
    return all(getattr(record, name) in (None, getattr(item, name)) for name in ("captions", "labels", "metadata"))


def record_name(record: Record) -> str:
    """Return what a report calls a record: its path, or else its id, or else its text."""
    return os.fspath(record.path) if record.path is not None else record.id or " ".join(record.captions or ())
