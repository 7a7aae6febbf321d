"""What a user names, as records, and which of them need work: files that are new or changed, or more that is said."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from diptych.collection.indexing.add_report import AddReport
from diptych.collection.indexing.file_facts import FactsReader, FileRequest, file_status
from diptych.collection.item import Item, Record, is_storable
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_name, items_by_path
from diptych.collection.store.store import Store
from diptych.data.caption_files import CaptionedPicture
from diptych.data.picture_files import find_pictures, is_video
from diptych.data.remote_files import RemotePath
from diptych.errors import InvalidInputError

RECORDS_AT_ONCE = 2000
Reading = Literal["nothing", "facts", "all"]


def collect_records(root: Root, sources: Any) -> tuple[list[Record], dict[str, str]]:
    """Return one record per picture or text of files, folders, records and captioned pictures.

    Of a path that is named twice, what is said last holds. The second result has the reason for each path that cannot
    be used.
    """
    records: dict[object, Record] = {}
    skipped: dict[str, str] = {}

    def skip(path: Path, reason: str) -> None:
        skipped[str(path)] = reason

    def each(source: Any) -> Iterable[Record]:
        if isinstance(source, Record):
            yield source
        elif isinstance(source, CaptionedPicture):
            try:
                yield Record(source.path, source.captions or None, source.labels or None, source.metadata or None)
            except InvalidInputError as reason:
                # One bad line of a caption file must not cost the others.
                skip(source.path, str(reason))
        elif isinstance(source, (str, os.PathLike)):
            path = root.given(source)
            yield from map(Record, find_pictures(path, on_unreadable=skip) if path.is_dir() else [path])
        elif isinstance(source, Iterable) and not isinstance(source, (bytes, dict)):
            for part in source:
                yield from each(part)
        else:
            raise InvalidInputError(
                f"add takes paths of pictures or folders, and Records, got {type(source).__name__}; pass a Record"
            )

    for record in each(sources):
        if record.path is not None:
            root.check_trusted()
        key = object() if record.path is None else root.given(record.path)
        records.pop(key, None)
        records[key] = record
    return list(records.values()), skipped


@dataclass(frozen=True)
class PendingRecord:
    """A record that says more than its item; ``reads`` is what is read of its file.

    ``stamp`` says how facts are read, empty where they are not kept.
    """

    record: Record
    known: Item | None
    path: Path | None = None
    reads: Reading = "nothing"
    sidecars: tuple[Path, ...] = ()
    stamp: str = ""

    @property
    def request(self) -> FileRequest | None:
        """What is to be read of the file; of known content, the facts alone."""
        if self.path is None or self.reads == "nothing":
            return None
        known_content = self.known.content_hash if self.known is not None and self.reads == "facts" else None
        return FileRequest(self.path, self.sidecars, known_content)


def pending_records(
    store: Store, root: Root, facts: FactsReader, records: Sequence[Record], report: AddReport
) -> Iterator[PendingRecord]:
    """Yield the records that need work; those that do not are counted in the report, or named with a reason.

    A file whose size and time are those of its item is not opened.
    """
    claimed: set[str] = set()
    for start in range(0, len(records), RECORDS_AT_ONCE):
        part = records[start : start + RECORDS_AT_ONCE]
        paths = [None if one.path is None else root.given(one.path) for one in part]
        with store.reading() as db:
            texts = text_ids(db, part)
            names = [one.id or texts.get(tuple(one.captions or ()), "") for one in part]
            by_name = items_by_name(db, filter(None, names))
            # Names that are not valid Unicode are in no database.
            storable = [path for path in paths if path is not None and is_storable(str(path))]
            by_path = items_by_path(db, map(root.stored, storable))
        for record, path, name in zip(part, paths, names, strict=True):
            at_path = None if path is None else by_path.get(root.stored(path), (0, None))[1]
            try:
                status = None if path is None else _status(root, path)
                _claim(claimed, [name] if path is None else [str(path), *filter(None, [record.id])])
                check_free(record, at_path)
            except InvalidInputError as reason:
                report.skipped[record_name(record)] = str(reason)
                continue
            known = at_path if path is not None and record.id is None else by_name.get(name, (0, None))[1]
            if path is None or status is None:
                pending = PendingRecord(record, known)
            else:
                is_stored = known == at_path and has_status(known, status)
                stamp = facts.stamp(path)
                is_due = known is None or known.facts_read != stamp
                # What is said of a video is said of all its moments, which have to be found again.
                is_read = not is_stored or (is_video(path) and (is_due or not says_nothing_new(record, known)))
                reads: Reading = "all" if is_read else "facts" if is_due else "nothing"
                pending = PendingRecord(record, known, path, reads, facts.sidecars(path), stamp)
            if pending.reads == "nothing" and says_nothing_new(record, known):
                report.unchanged += 1
            else:
                yield pending


def _status(root: Root, path: Path) -> os.stat_result:
    root.check_inside(path)
    # A listing has told it already.
    listed = path.listed if isinstance(path, RemotePath) else None
    return listed if listed is not None and is_storable(str(path)) else file_status(path)


def has_status(item: Item | None, status: os.stat_result) -> bool:
    """Return True if a file has the size and the time that an item remembers."""
    return item is not None and (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns)


def check_free(record: Record, at_path: Item | None) -> None:
    """Raise where the path of a record belongs to another item than it names."""
    if record.id is not None and record.path is not None and at_path is not None and at_path.id != record.id:
        raise InvalidInputError(f"it is in the collection as item {at_path.id}; remove that one first")


def _claim(claimed: set[str], names: Sequence[str]) -> None:
    if not claimed.isdisjoint(names):
        raise InvalidInputError("it is named twice; name each path and each id once")
    claimed.update(names)


def record_name(record: Record) -> str:
    """Return what a report calls a record: its path, or else its id, or else its text."""
    return os.fspath(record.path) if record.path is not None else record.id or " ".join(record.captions or ())


def says_nothing_new(record: Record, item: Item | None) -> bool:
    """Return True if an item has all that a record says of it already."""
    said = ("captions", "labels", "metadata")
    return item is not None and all(getattr(record, name) in (None, getattr(item, name)) for name in said)


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text."""
    return sha256(text.encode()).hexdigest()


def text_ids(db: Connection, records: Iterable[Record]) -> dict[tuple[str, ...], str]:
    """Return the public ids of texts without one, by their captions.

    It is the same for the same text, unless its item has been given other captions since.
    """
    unnamed = {tuple(record.captions or ()) for record in records if record.path is None and record.id is None}
    digests = {texts: sha256("\0".join(texts).encode()) for texts in unnamed}
    ids: dict[tuple[str, ...], str] = {}
    while digests:
        names = {texts: digest.hexdigest()[:16] for texts, digest in digests.items()}
        known = items_by_name(db, names.values())
        ids |= {texts: name for texts, name in names.items() if name not in known or known[name][1].captions == texts}
        digests = {texts: digest for texts, digest in digests.items() if texts not in ids}
        for digest in digests.values():
            digest.update(b"\0")
    return ids
