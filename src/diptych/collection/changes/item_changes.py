"""Changes of the items of a collection, from whatever a user names."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from diptych.atomic_files import write_json
from diptych.collection.browse.filter import Filter
from diptych.collection.browse.saved import chosen_items
from diptych.collection.changes.add_report import AddProgress, AddReport, Progress
from diptych.collection.changes.adding import Adding
from diptych.collection.changes.encoding import Encoding, KnownKeys
from diptych.collection.changes.file_facts import checked_choice, kept_facts
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.change_journal import ChangeJournal
from diptych.collection.storage.item import Item, Record
from diptych.collection.storage.layout import Root
from diptych.data.caption_files import CaptionedPicture
from diptych.data.picture_files import find_pictures
from diptych.errors import InvalidInputError, UnknownItemError


class Sources:
    """Collects records from files, folders, records and captioned pictures; ``skipped`` gets what cannot be used."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.skipped: dict[str, str] = {}

    def records(self, sources: Any) -> list[Record]:
        """Return one record per picture or text; of a path that is named twice, what is said last holds."""
        found: dict[object, Record] = {}
        for record in self._each(sources):
            if record.path is not None:
                self._root.check_trusted()
            key = object() if record.path is None else self._root.given(record.path)
            found.pop(key, None)
            found[key] = record
        return list(found.values())

    def _each(self, source: Any) -> Iterable[Record]:
        if isinstance(source, Record):
            yield source
        elif isinstance(source, CaptionedPicture):
            try:
                record = Record(source.path, source.captions or None, source.labels or None, source.metadata or None)
            except InvalidInputError as reason:
                # One bad line of a caption file must not cost the others.
                self._skip(source.path, str(reason))
            else:
                yield record
        elif isinstance(source, (str, os.PathLike)):
            path = self._root.given(source)
            files = find_pictures(path, on_unreadable=self._skip) if path.is_dir() else [path]
            yield from map(Record, files)
        elif isinstance(source, Iterable) and not isinstance(source, (bytes, dict)):
            for part in source:
                yield from self._each(part)
        else:
            raise InvalidInputError(
                f"add takes paths of pictures or folders, and Records, got {type(source).__name__}; pass a Record"
            )

    def _skip(self, path: Path, reason: str) -> None:
        self.skipped[str(path)] = reason


_ITEMS_AT_ONCE = 1 << 14
# Letting others write costs what has been read ahead.
_SHORTEST_PART = 1.0
Which = str | os.PathLike[str] | Filter | Iterable[str | os.PathLike[str]]


class ItemChanges:
    """Adds, changes and removes items; but for adding, which pauses, the caller is the only writer."""

    def __init__(self, state: LiveState, scheduler: str | None = None) -> None:
        self._state = state
        self._scheduler = scheduler

    def add(self, sources: Any, progress: Progress | None, missing_in: Path | None = None) -> AddReport:
        """Add what the sources hold, and note what could not be read; remove what is gone from a folder.

        Between two commits those are let in who wait to write. What they have changed is looked at anew then, as if
        what is left were added by another call.
        """
        started, collected, stale = time.perf_counter(), Sources(self._state.root), list[Item]()
        report, left, total, wait = AddReport(skipped=collected.skipped), list[Record](), 0, None
        while True:
            with self._state.writing(wait=wait):
                if wait is None:
                    left = collected.records(sources)
                    total, wait = len(left), math.inf
                left = self._add_part(left, total, report, stale, progress)
                if not left:
                    return self._finished(report, stale, missing_in, started)

    def _add_part(
        self,
        records: list[Record],
        total: int,
        report: AddReport,
        stale: list[Item],
        progress: Progress | None,
    ) -> list[Record]:
        """Add records until somebody else wants to write, and return the others."""
        adding, begun, before = self._adding(), time.monotonic(), total - len(records)

        def tell(part: AddProgress) -> None:
            if progress is not None:
                progress(replace(part, done=before + part.done, total=total))

        def is_awaited() -> bool:
            return time.monotonic() - begun >= _SHORTEST_PART and self._state.is_awaited()

        left = adding.add(records, tell, is_awaited)
        report.include(adding.report)
        stale += adding.stale
        return left

    def _finished(self, report: AddReport, stale: Sequence[Item], missing_in: Path | None, started: float) -> AddReport:
        items = self._state.items()
        # One that was noted before a pause may have been read again after it.
        gone = [item for item in stale if items.get(item.id) == item]
        self.remove(gone)
        report.removed += [str(item.path) for item in gone]
        if report.changed:
            self._state.tidy(report.changed)
        else:
            self._state.store.words.prepare()
        report.seconds = time.perf_counter() - started
        write_json(self._state.layout.last_run, {"skipped": report.skipped})
        if missing_in is not None:
            report.removed = self.remove_missing(missing_in)
        return report

    def change(self, changes: Sequence[tuple[Item, Record]]) -> None:
        """Give items the captions, labels and metadata of records, in one commit."""
        self._adding().change(changes)
        self._state.tidy(len(changes))

    def named(self, which: Which) -> list[Item]:
        """Return the items that a user names by id, path or filter."""
        items = self._state.items()
        if isinstance(which, Filter):
            wanted = chosen_items(which, self._state.layout.folder)
            return [] if wanted is None else items.matching(wanted)
        each = [which] if isinstance(which, (str, os.PathLike)) else list(which)
        found = [(name, self._state.find(name, items)) for name in each]
        unknown = [os.fspath(name) for name, item in found if item is None]
        if unknown:
            names = ", ".join(unknown[:5])
            raise UnknownItemError(f"not in {self._state.layout.folder}: {names}; name ids or paths in the collection")
        return list({item.id: item for _, item in found if item is not None}.values())

    def remove(self, items: Sequence[Item]) -> None:
        """Remove items, and what is written in their pictures unless others have the same."""
        if items:
            self._state.store.delete_items(items, self._state.next_ns())
            contents = list({item.content_hash for item in items if item.content_hash is not None})
            texts, left = self._state.store.present_keys("picture_texts", contents), self._state.items()
            self._state.store.delete_rows("picture_texts", [key for key in texts if not left.find("content", key)])
            self._state.tidy(len(items))

    def remove_missing(self, base: Path | None) -> list[str]:
        """Remove the items whose files are gone, all of them or those of a folder, and return their paths."""
        self._state.root.check_trusted()
        root, below = self._state.root, "" if base is None else os.path.join(base, "")
        missing = self._state.items().with_paths(
            lambda path: os.path.join(root.folder, path).startswith(below) and root.is_missing(path)
        )
        self.remove(missing)
        return [str(item.path) for item in missing]

    def keep_facts(self, choice: str) -> int:
        """Keep so much of what photographs say from now on; drop what is stored of the rest, and say of how many."""
        state = self._state
        if checked_choice(choice) == state.layout.facts:
            return 0
        state.write_layout(replace(state.layout, facts=choice), None)
        now = state.next_ns()
        shorter = [
            # Read as it never was, so that the next run reads it again.
            replace(item, facts=kept, facts_read="", updated_ns=now + place)
            for place, item in enumerate(state.items())
            if len(kept := kept_facts(item.facts, choice)) < len(item.facts)
        ]
        for start in range(0, len(shorter), _ITEMS_AT_ONCE):
            some = shorter[start : start + _ITEMS_AT_ONCE]
            state.store.put_items(some, some)
        # Past items would keep what is to be forgotten.
        ChangeJournal(state.layout.folder).forget_all(state.store, state.next_ns())
        if shorter:
            state.tidy(len(shorter))
        return len(shorter)

    def _adding(self) -> Adding:
        state = self._state
        kept = state.layout.facts
        return Adding(state.store, state.root, self._encodings, state.items(), state.next_ns(), kept, self._scheduler)

    def _encodings(self) -> list[Encoding]:
        state = self._state
        known = KnownKeys(state.store)
        return [Encoding(state.store, state.retriever(names.name), names, known) for names in state.layout.followed]
