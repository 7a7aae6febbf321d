"""Which records need work: files that are new or changed, facts that were never read, and what a record adds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from diptych.collection.indexing.add_report import AddReport
from diptych.collection.indexing.file_facts import FactsReader, FileRequest, file_status
from diptych.collection.indexing.records import record_name, says_nothing_new, text_ids
from diptych.collection.item import Item, Record, is_storable
from diptych.collection.root import Root
from diptych.collection.store.items import items_by_name, items_by_path
from diptych.collection.store.store import Store
from diptych.data.picture_files import is_video
from diptych.data.remote_files import RemotePath
from diptych.errors import InvalidInputError

RECORDS_AT_ONCE = 2000
Reading = Literal["nothing", "facts", "all"]


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
            by_path = items_by_path(db, map(root.stored, _storable(paths)))
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


def _storable(paths: Iterable[Path | None]) -> Iterator[Path]:
    """Yield paths that a database can be asked for: names of another encoding are in none."""
    for path in paths:
        try:
            os.fspath(path or "").encode()
        except UnicodeEncodeError:
            continue
        if path is not None:
            yield path
