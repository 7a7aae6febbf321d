"""Changes of the items of a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from diptych.collection.add_progress import AddProgress
from diptych.collection.add_report import AddReport
from diptych.collection.adding import Adding
from diptych.collection.encoding import Encoding
from diptych.collection.every_encoding import EveryEncoding
from diptych.collection.item import Item
from diptych.collection.layout import write_json
from diptych.collection.live_state import LiveState
from diptych.collection.record import Record
from diptych.collection.sources import Sources

Progress = Callable[[AddProgress], None]


class ItemChanges:
    """Adds, changes and removes items; the caller is the only writer."""

    def __init__(self, state: LiveState) -> None:
        self._state = state

    def add(self, sources: Any, progress: Progress | None) -> AddReport:
        """Add what the sources hold, and note what could not be read."""
        started = time.perf_counter()
        collected = Sources(self._state.root)
        records = collected.records(sources)
        adding = self._adding()
        adding.report.skipped.update(collected.skipped)
        report = adding.add(records, progress)
        if report.changed:
            self._compact()
        report.seconds = time.perf_counter() - started
        write_json(self._state.layout.last_run, {"skipped": report.skipped})
        return report

    def change(self, item: Item, record: Record) -> None:
        """Give an item the captions, labels and metadata of a record."""
        self._adding().change(item, record)
        self._compact()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove items."""
        if ids:
            self._state.store.delete_items(ids)
            self._state.publish(removed=ids)
            self._compact()

    def remove_missing(self, base: Path) -> list[Item]:
        """Remove the items of a folder whose files are gone, and return them."""
        root = self._state.root
        missing = [
            item
            for item in self._state.catalogue().items.values()
            if item.path is not None and root.file(item.path).is_relative_to(base) and root.is_missing(item.path)
        ]
        self.remove([item.id for item in missing])
        return missing

    def _adding(self) -> Adding:
        state = self._state
        return Adding(state.store, state.root, self._encoding, state.catalogue(), state.publish)

    def _encoding(self) -> EveryEncoding:
        state = self._state
        return EveryEncoding(
            [Encoding(state.store, state.retriever(names.name), names) for names in state.layout.stored]
        )

    def _compact(self) -> None:
        self._state.store.compact()
        # Joining files is a new version of the store, with the same items.
        self._state.publish()
