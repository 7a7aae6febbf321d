"""One batch of records to rows: items, contents, points and thumbnails in one transaction.

What another process has added, changed or removed meanwhile is looked at inside that transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from diptych.collection.indexing.add_report import AddReport
from diptych.collection.indexing.encoding import Encoded, Source, StatedFile, has_all_points, put_encoded
from diptych.collection.indexing.file_facts import FileFacts, ReadFile, hashed_file
from diptych.collection.indexing.records import PendingRecord, check_free, record_name, text_hash, text_ids
from diptych.collection.item import Item, Record, caption_ids
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_content, items_by_name, items_by_path
from diptych.collection.store.models import followed_models
from diptych.collection.store.writing import PICTURE, TEXT, content_ids, put_items, put_thumbnails
from diptych.errors import InvalidInputError

SAID = ("content_hash", "captions", "labels", "metadata")


@dataclass(frozen=True)
class ReadRecord:
    """A record with what was read of its file: nothing, its facts, or why it cannot be read."""

    pending: PendingRecord
    facts: ReadFile | None = None


@dataclass(frozen=True)
class Batch:
    """Records that are encoded together and written in one transaction."""

    records: Sequence[ReadRecord]

    @cached_property
    def files(self) -> dict[str, StatedFile]:
        """The pictures that were read, by content."""
        return {
            one.facts.content_hash: (hashed_file(one.pending.path, one.facts), one.facts.status)
            for one in self.records
            if isinstance(one.facts, FileFacts) and one.pending.path is not None and one.pending.reads == "all"
        }

    @cached_property
    def texts(self) -> dict[str, str]:
        """The captions by content."""
        return {text_hash(text): text for one in self.records for text in one.pending.record.captions or ()}


@dataclass
class Written:
    """What a write has done: the items of each record, changed or as they were, and why others were left out."""

    items: list[tuple[PendingRecord, Item]] = field(default_factory=list)
    unchanged: list[Item] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> tuple[str, ...]:
        """The ids of items that are durable now."""
        return tuple(item.id for item in (*(item for _, item in self.items), *self.unchanged))

    def count_in(self, report: AddReport) -> None:
        """Add what was done to a report."""
        report.skipped |= self.skipped
        report.duplicates |= self.copies
        report.unchanged += len(self.unchanged)
        for pending, item in self.items:
            before = pending.known
            if before is None:
                report.added += 1
            elif before.path != item.path:
                report.renamed += 1
            elif all(getattr(before, name) == getattr(item, name) for name in SAID):
                report.unchanged += 1
                report.described += before.facts != item.facts
            else:
                report.updated += 1


def write_batch(db: Connection, root: Root, batch: Batch, made: Encoded, sources: Sequence[Source]) -> Written | None:
    """Write a batch in a transaction; None, and nothing, where it has to be encoded again.

    That is where a model has come since, or others have removed the items that shared points with it.
    """
    if not has_all_models(db, sources) or not has_all_points(
        db, made, sources, {"image": batch.files, "text": batch.texts}
    ):
        return None
    written = Written()
    current = _current_records(db, root, batch, written)
    ids = content_ids(db, [key for key in batch.files if key not in made.failures], PICTURE)
    ids |= content_ids(db, [key for key in batch.texts if key not in made.failures], TEXT)
    put_encoded(db, made, sources, ids)
    _put_new_thumbnails(db, batch, ids)
    for one, name in current:
        pending, item = one.pending, _item(root, one, name)
        picture = [item.content_hash] if pending.reads == "all" and item.content_hash is not None else []
        contents = picture + [text_hash(text) for text in item.captions]
        if reasons := [made.failures[key] for key in contents if key in made.failures]:
            written.skipped[record_name(pending.record)] = reasons[0]
        elif item == pending.known:
            written.unchanged.append(item)
        else:
            written.items.append((pending, item))
    items = [item for _, item in written.items]
    numbers = put_items(db, items, contents=ids)
    _note_copies(db, dict(zip((item.id for item in items), numbers, strict=True)), written)
    return written


def has_all_models(db: Connection, sources: Sequence[Source]) -> bool:
    """Return True if what was encoded with some models is all that new items need."""
    return {model.id for model in followed_models(db)} <= {model.id for model, _ in sources}


def _current_records(db: Connection, root: Root, batch: Batch, written: Written) -> list[tuple[ReadRecord, str]]:
    """Return the records that can be written, with their items as the store has them now, and names of new items."""
    texts = text_ids(db, (one.pending.record for one in batch.records))
    names = [_name(one.pending, texts) for one in batch.records]
    paths = ["" if one.pending.path is None else root.stored(one.pending.path) for one in batch.records]
    by_name = {name: item for name, (_, item) in items_by_name(db, filter(None, names)).items()}
    by_path = {path: item for path, (_, item) in items_by_path(db, filter(None, paths)).items()}
    hashes = [one.facts.content_hash for one in batch.records if isinstance(one.facts, FileFacts)]
    twins = {key: [item for _, item in items] for key, items in items_by_content(db, hashes).items()}
    claimed = {one.pending.known.id for one in batch.records if one.pending.known is not None}
    current: list[tuple[ReadRecord, str]] = []
    for one, name, path in zip(batch.records, names, paths, strict=True):
        pending, record = one.pending, one.pending.record
        at_path = by_path.get(path)
        known = at_path if path and record.id is None else by_name.get(name)
        if known is None and pending.known is not None and pending.reads != "all":
            # Removed or renamed by another process since, and its file was not read: it is as it was known.
            known = by_name.get(pending.known.id, pending.known)
        if known is None and record.id is None and isinstance(one.facts, FileFacts):
            # An item with this content whose file is gone: the file was renamed.
            free = (item for item in twins.get(one.facts.content_hash, ()) if item.id not in claimed and item.path)
            known = next((item for item in free if root.is_missing(str(item.path))), None)
        try:
            if isinstance(one.facts, InvalidInputError):
                raise one.facts
            check_free(record, at_path)
        except InvalidInputError as reason:
            written.skipped[record_name(record)] = str(reason)
            continue
        if known is not None:
            claimed.add(known.id)
        current.append((ReadRecord(replace(pending, known=known), one.facts), "" if path and not record.id else name))
    return current


def _name(pending: PendingRecord, texts: Mapping[tuple[str, ...], str]) -> str:
    if pending.record.id is not None:
        return pending.record.id
    if pending.path is None:
        return texts[tuple(pending.record.captions or ())]
    return "" if pending.known is None else pending.known.id


def _item(root: Root, one: ReadRecord, name: str) -> Item:
    pending, facts, said = one.pending, one.facts, dict[str, Any]()
    if pending.path is not None and isinstance(facts, FileFacts):
        path = root.stored(pending.path)
        if pending.reads == "all":
            said |= {"path": path, "content_hash": facts.content_hash, "width": facts.width, "height": facts.height}
            said |= {"size": facts.status.st_size, "mtime_ns": facts.status.st_mtime_ns}
        folder = path.rpartition("/")[0]
        said["facts"] = {**facts.said, "folder": folder} if pending.stamp and folder else facts.said
        said["facts_read"] = pending.stamp
    if pending.known is not None:
        return replace(pending.known, **said, **said_of(pending.record, pending.known))
    said["id"] = name or secrets.token_hex(8)
    return Item(**{"path": None, "content_hash": None} | said | said_of(pending.record, None, said["id"]))


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


def _put_new_thumbnails(db: Connection, batch: Batch, ids: Mapping[str, int]) -> None:
    read = [one.facts for one in batch.records if isinstance(one.facts, FileFacts)]
    jpegs = {ids[one.content_hash]: one.thumbnail for one in read if one.thumbnail and one.content_hash in ids}
    condition, values = db.among("content", list(jpegs))
    there = set(db.ids(f"SELECT content FROM thumbnail WHERE {condition}", values).tolist())
    put_thumbnails(db, {content: jpeg for content, jpeg in jpegs.items() if content not in there})


def _note_copies(db: Connection, numbers: Mapping[str, int], written: Written) -> None:
    """Note for each added picture the first one before it with the same content."""
    added = [item for pending, item in written.items if pending.known is None and item.content_hash is not None]
    twins = items_by_content(db, {str(item.content_hash) for item in added})
    for item in added:
        first, twin = twins[str(item.content_hash)][0]
        if first < numbers[item.id] and item.path is not None and twin.path is not None:
            written.copies[item.path] = twin.path
