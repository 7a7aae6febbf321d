"""Changes of the items of a collection, from what a user names."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.filter import Filter
from diptych.collection.indexing.add_report import AddReport, Progress, no_progress
from diptych.collection.indexing.adding import Adding
from diptych.collection.indexing.encoding import Encoded, Source, encode, has_all_points, put_encoded, task_of
from diptych.collection.indexing.file_facts import checked_choice, kept_facts
from diptych.collection.indexing.records import collect_records, text_hash
from diptych.collection.indexing.writing import has_all_models, said_of
from diptych.collection.item import Item, Record
from diptych.collection.root import Root, find_items
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_after, items_by_id, items_by_name, put_unread_files, unread_files
from diptych.collection.store.store import Store, put_setting, setting
from diptych.collection.store.writing import TEXT, content_ids, put_items, remove_items
from diptych.data.ignore_files import IgnoreFiles
from diptych.data.picture_files import split_moment
from diptych.data.remote_files import is_remote
from diptych.errors import InvalidInputError, UnknownItemError

FACTS = "facts"
ROWS_AT_ONCE = 2000
PATHS_AT_ONCE = 20_000
Which = str | os.PathLike[str] | Filter | Iterable[str | os.PathLike[str]]


class ItemChanges:
    """Adds, changes and removes items; each run is one operation, whose batches are durable one by one.

    ``sources`` loads the models that new items get points of; ``matching`` returns the numbers of the items that meet a
    filter.
    """

    def __init__(
        self,
        store: Store,
        root: Root,
        sources: Callable[[], Sequence[Source]],
        matching: Callable[[Connection, Filter], IntArray],
        scheduler: str | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._sources = sources
        self._matching = matching
        self._scheduler = scheduler

    def add(self, sources: Any, progress: Progress | None, missing_in: Path | None = None) -> AddReport:
        """Add what the sources hold, and note what could not be read; remove what is gone from a folder."""
        started = time.perf_counter()
        records, unusable = collect_records(self._root, sources)
        with self._store.reading() as db:
            facts = setting(db, FACTS, "all")
        adding = Adding(self._store, self._root, self._sources, facts=facts, scheduler=self._scheduler)
        adding.add(records, progress or no_progress)
        report = adding.report
        report.skipped = unusable | report.skipped
        report.removed = self._remove_stale(adding.stale)
        report.seconds = time.perf_counter() - started
        with self._store.reading() as db:
            is_known = unread_files(db) == report.skipped
        if not is_known:
            self._store.write(lambda db: put_unread_files(db, report.skipped))
        if missing_in is not None:
            report.removed = self.remove_missing(missing_in)
        return report

    def _remove_stale(self, stale: Sequence[Item]) -> list[str]:
        def remove(db: Connection) -> list[str]:
            there = items_by_name(db, [item.id for item in stale])
            # One that was noted may have been read again since.
            gone = [there[item.id] for item in stale if there.get(item.id, (0, None))[1] == item]
            remove_items(db, [number for number, _ in gone])
            return [str(item.path) for _, item in gone]

        return self._store.write(remove, freeing=True) if stale else []

    def update_all(self, changes: Mapping[str | os.PathLike[str], Mapping[str, Any]]) -> list[Item]:
        """Change several items in one write; all of them, or none and an error.

        By id or path, ``captions``, ``labels`` and ``metadata``; what is None stays.
        """
        texts = {text_hash(text): text for said in changes.values() for text in said.get("captions") or ()}
        while True:
            sources = self._sources() if texts else ()
            with self._store.reading() as db:
                task = task_of(db, sources, (), texts)
            made = encode(task, sources)
            for reason in made.failures.values():
                raise InvalidInputError(reason)
            updated = self._store.write(partial(self._update, changes=changes, made=made, sources=sources, texts=texts))
            if updated is not None:
                return updated

    def _update(
        self,
        db: Connection,
        changes: Mapping[str | os.PathLike[str], Mapping[str, Any]],
        made: Encoded,
        sources: Sequence[Source],
        texts: Mapping[str, str],
    ) -> list[Item] | None:
        """Change items in one transaction; None, and nothing, where texts have to be encoded again."""
        if texts and not (has_all_models(db, sources) and has_all_points(db, made, sources, {"text": texts})):
            return None
        found = find_items(db, self._root, list(changes))
        self._check_found(list(changes), found)
        known = [item for item in found if item is not None]
        changed: dict[str, Item] = {}
        for (_, item), said in zip(known, changes.values(), strict=True):
            changed[item.id] = replace(item, **said_of(_record(item, **said), item))
        put_encoded(db, made, sources, content_ids(db, list(texts), TEXT))
        put_items(db, list(changed.values()))
        return items_by_id(db, [number for number, _ in known])

    def named(self, which: Which) -> dict[int, Item]:
        """Return the items that a user names by id, path or filter, by number."""
        with self._store.reading() as db:
            if isinstance(which, Filter):
                numbers = np.sort(self._matching(db, which)).tolist()
                return dict(zip(numbers, items_by_id(db, numbers), strict=True))
            each = [which] if isinstance(which, (str, os.PathLike)) else list(which)
            found = find_items(db, self._root, each)
        self._check_found(each, found)
        return dict(one for one in found if one is not None)

    def _check_found(self, each: Sequence[str | os.PathLike[str]], found: Sequence[tuple[int, Item] | None]) -> None:
        unknown = [os.fspath(name) for name, item in zip(each, found, strict=True) if item is None]
        if unknown:
            names = ", ".join(unknown[:5])
            raise UnknownItemError(f"not in {self._root.folder}: {names}; name ids or paths in the collection")

    def remove(self, which: Which) -> list[str]:
        """Remove items by id, path or filter, and return their ids; files stay where they are."""
        items = self.named(which)
        self._remove(list(items))
        return [item.id for item in items.values()]

    def _remove(self, numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            some = numbers[start : start + ROWS_AT_ONCE]
            self._store.write(partial(remove_items, ids=some), freeing=True)

    def remove_missing(self, base: Path | None) -> list[str]:
        """Remove the items whose files are gone or ignored, of all or those of a folder, and return their paths."""
        self._root.check_trusted()
        below, after, missing = "" if base is None else os.path.join(base, ""), 0, dict[int, str]()
        root, ignored = self._root.folder, IgnoreFiles()
        while True:
            sql = "SELECT id, path FROM item WHERE id > ? AND path IS NOT NULL ORDER BY id LIMIT ?"
            with self._store.reading() as db:
                rows = db.rows(sql, (after, PATHS_AT_ONCE))
            if not rows:
                break
            after = rows[-1][0]
            inside = {path: number for number, path in rows if os.path.join(self._root.folder, path).startswith(below)}
            missing |= {inside[path]: path for path in self._root.missing(list(inside))}
            if not is_remote(root):
                left_out = (path for path in inside if ignored.leaves_out(root / split_moment(path)[0], root))
                missing |= {inside[path]: path for path in left_out}
        self._remove(list(missing))
        return list(missing.values())

    def keep_facts(self, choice: str) -> int:
        """Keep so much of what photographs say from now on; drop what is stored of the rest, and say of how many."""
        after, n_shorter = 0, 0
        with self._store.reading() as db:
            if checked_choice(choice) == setting(db, FACTS, "all"):
                return 0
        self._store.write(lambda db: put_setting(db, FACTS, choice))
        while (some := self._store.write(partial(_shorten_facts, after=after, choice=choice)))[0]:
            after, n_shorter = some[0], n_shorter + some[1]
        return n_shorter


def _record(
    item: Item,
    captions: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Record:
    if item.path is None and captions is not None and not captions:
        raise InvalidInputError(f"item {item.id} has no picture, so it needs a caption; remove it instead")
    return Record(item.path, captions or item.captions if item.path is None else captions, labels, metadata)


def _shorten_facts(db: Connection, after: int, choice: str) -> tuple[int, int]:
    """Drop facts of the next items; return the last number that was looked at, 0 at the end, and how many lost some."""
    items = items_after(db, after, ROWS_AT_ONCE)
    shorter = [
        # Read as it never was, so that the next run reads it again.
        replace(item, facts=kept, facts_read="")
        for _, item in items
        if len(kept := kept_facts(item.facts, choice)) < len(item.facts)
    ]
    if shorter:
        put_items(db, shorter)
    return (items[-1][0] if items else 0), len(shorter)
