"""Small writes in line: first come, first served, and those that wait together are one commit."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from diptych.collection import Collection, Item, Record
from diptych.collection.browse.live_items import text_item_id
from diptych.collection.changes.adding import record_name
from diptych.errors import CollectionBusyError, InvalidInputError, UnknownItemError, without_folders
from diptych.service.problems import Problem

# What one commit takes: so many texts and edits, or fewer pictures, which have to be encoded first.
_LARGEST_COMMIT, _PICTURE_COST = 64, 8
_MOST_WAITING = 1_000


@dataclass
class Change:
    """What somebody waits for: an item to add, to change (``said``), or to remove."""

    record: Record | None = None
    item_id: str = ""
    said: dict[str, Any] | None = None
    done: Future[Item] = field(default_factory=Future)

    @property
    def names(self) -> frozenset[str]:
        """What it is about; of two changes of the same, the second waits for the next commit."""
        if self.record is None:
            return frozenset({self.item_id})
        path = None if self.record.path is None else os.fspath(self.record.path)
        text = "\0".join(self.record.captions or ()) if path is None and self.record.id is None else None
        return frozenset(name for name in (path, self.record.id, text) if name is not None)

    @property
    def cost(self) -> int:
        """How much of a commit it is."""
        return 1 if self.record is None or self.record.path is None else _PICTURE_COST


class WriteQueue:
    """Writes to a collection in a thread of its own, so that nobody who waits holds one.

    Each change is answered when the commit that it is in is durable. One that cannot be made fails alone.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._waiting: deque[Change] = deque()
        self._is_ending = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def n_waiting(self) -> int:
        """How many changes wait for the commit after the present one."""
        return len(self._waiting)

    def add(self, record: Record) -> Future[Item]:
        """Add an item, unless its id is taken."""
        return self._wait(Change(record=record))

    def change(self, item_id: str, said: dict[str, Any]) -> Future[Item]:
        """Replace captions, labels or metadata of an item."""
        return self._wait(Change(item_id=item_id, said=said))

    def remove(self, item_id: str) -> Future[Item]:
        """Remove an item, and return what it was."""
        return self._wait(Change(item_id=item_id))

    def close(self, seconds: float) -> None:
        """Write what waits, and end; should another process not let go of the collection, after that time."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(seconds)

    def _wait(self, change: Change) -> Future[Item]:
        with self._changed:
            if self._is_ending or len(self._waiting) >= _MOST_WAITING:
                raise CollectionBusyError(f"{len(self._waiting)} writes wait for {self._collection.name}; try again")
            self._waiting.append(change)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="diptych-writes", daemon=True)
                self._thread.start()
            self._changed.notify()
        return change.done

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_ending:
                    self._changed.wait()
                changes = self._next()
            if not changes:
                return
            # Of those that wait together nobody knows who was first, so that equal ones can be one commit.
            for write, chosen in (
                (self._add, [one for one in changes if one.record is not None]),
                (self._change, [one for one in changes if one.said is not None]),
                (self._remove, [one for one in changes if one.record is None and one.said is None]),
            ):
                self._write(write, chosen)

    def _next(self) -> list[Change]:
        """Take what can be one commit off the line; who asked for something of an item first, comes first."""
        taken: list[Change] = []
        left: list[Change] = []
        names: set[str] = set()
        cost = 0
        while self._waiting and cost < _LARGEST_COMMIT:
            change = self._waiting.popleft()
            if not names.isdisjoint(change.names):
                left.append(change)
            elif change.done.set_running_or_notify_cancel():
                taken.append(change)
                cost += change.cost
            names |= change.names
        self._waiting.extendleft(reversed(left))
        return taken

    def _write(self, write: Callable[[Sequence[Change]], list[Item | Exception]], changes: Sequence[Change]) -> None:
        try:
            outcomes = write(changes) if changes else []
        except Exception as problem:
            # Another process does not let go of the collection, its disk is full: that is nobody's fault here.
            outcomes = [problem] * len(changes)
        for change, outcome in zip(changes, outcomes, strict=True):
            if isinstance(outcome, Exception):
                change.done.set_exception(outcome)
            else:
                change.done.set_result(outcome)

    def _add(self, changes: Sequence[Change]) -> list[Item | Exception]:
        records = [change.record for change in changes if change.record is not None]
        taken = [record for record in records if record.id is not None and self._find(record.id) is not None]
        skipped = self._collection.add([record for record in records if record not in taken]).skipped
        outcomes: list[Item | Exception] = []
        for record in records:
            if record in taken:
                detail = f"There is an item {record.id!r} already; change it with PATCH."
                outcomes.append(Problem(409, "id-taken", detail))
            elif reason := skipped.get(record_name(record)):
                why = without_folders(reason, self._collection.root)
                outcomes.append(Problem(422, "not-added", f"The item could not be added: {why}"))
            else:
                # The same text is the same item, wherever it came from.
                text = () if record.path is not None or record.id is not None else tuple(record.captions or ())
                outcomes.append(self._collection[record.path or record.id or text_item_id(text, self._find)])
        return outcomes

    def _change(self, changes: Sequence[Change]) -> list[Item | Exception]:
        try:
            return [*self._collection.update_all({change.item_id: change.said or {} for change in changes})]
        except (InvalidInputError, UnknownItemError) as problem:
            # One of them cannot be made, and so none was; the others must not pay for it.
            return [problem] if len(changes) == 1 else [self._change([change])[0] for change in changes]

    def _remove(self, changes: Sequence[Change]) -> list[Item | Exception]:
        items = [self._find(change.item_id) for change in changes]
        self._collection.remove([item.id for item in items if item is not None])
        gone = UnknownItemError("the item was removed by somebody else")
        return [item or gone for item in items]

    def _find(self, item_id: str) -> Item | None:
        with suppress(UnknownItemError):
            item = self._collection[item_id]
            # Paths, which a collection takes as well, are no names here.
            return item if item.id == item_id else None
        return None
