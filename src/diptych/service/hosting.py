"""Collections that are being served: whether they can be searched yet, watches over folders, and writes in line."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from diptych.atomic_files import exclusive_lock
from diptych.collection import AddReport, Collection, FolderWatcher, Item, Record
from diptych.collection.indexing.records import record_name
from diptych.errors import CollectionBusyError, InvalidInputError, UnknownItemError, without_folders
from diptych.service.operations.logging import Metrics
from diptych.service.problems import Problem

_KEPT_PAST = 2


@dataclass(frozen=True)
class HostedCollection:
    """A collection under the name that addresses call it by."""

    name: str
    collection: Collection
    _past: dict[tuple[str, int], Collection] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def at(self, as_of: str | None) -> HostedCollection:
        """Return the collection as it was at a moment; the last few of these are kept."""
        if as_of is None:
            return self
        # Asked each time: what was kept a minute ago may be gone on purpose, and today goes on.
        key = as_of, self.collection.version_at(as_of).number
        with self._lock:
            past = self._past[key] = self._past.pop(key) if key in self._past else self.collection.at(as_of)
            if len(self._past) > _KEPT_PAST:
                # Searches that still use it go on.
                self._past.pop(next(iter(self._past))).close()
            return HostedCollection(self.name, past)

    @cached_property
    def writes(self) -> WriteQueue:
        """Where small changes wait for the next commit."""
        return WriteQueue(self.collection)

    @property
    def state_folder(self) -> Path:
        """Where this machine keeps the maps and the lock of the watch; clicks and jobs are in the collection."""
        return self.collection.folder / "service"

    @property
    def index_bytes(self) -> int:
        """The size of the search indexes on disk."""
        return sum(path.stat().st_size for path in (self.collection.folder / "derived").rglob("*") if path.is_file())


_RETRY_SECONDS = 5.0
_log = logging.getLogger("diptych.service")


class Readiness:
    """Searches each collection once in the background, so that /ready can tell and no visitor waits for the models.

    One that cannot be searched is tried again every few seconds.
    """

    def __init__(self, hosted: Sequence[HostedCollection]) -> None:
        self.states = {each.name: "getting ready" for each in hosted}
        self._hosted = hosted
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="readiness", daemon=True)

    def start(self) -> None:
        """Begin in the background."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End the thread; a retriever that is being loaded is given that long."""
        self._is_stopping.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        waiting = list(self._hosted)
        while waiting and not self._is_stopping.is_set():
            waiting = [each for each in waiting if not self._is_ready(each)]
            if waiting:
                self._is_stopping.wait(_RETRY_SECONDS)

    def _is_ready(self, hosted: HostedCollection) -> bool:
        try:
            for target in ("images", "texts"):
                hosted.collection.search("a picture", 1, target=target)
        except Exception:
            # Whatever it is, the service goes on for the other collections; clients see no paths of this machine.
            _log.exception("collection %s cannot be searched; trying again soon", hosted.name)
            self.states[hosted.name] = "cannot be searched; the log of the service says why"
            return False
        self.states[hosted.name] = "ready"
        return True


class CollectionWatch:
    """Brings in what changes in a collection's folder, in the background; a lock keeps other services from it."""

    def __init__(self, hosted: HostedCollection, metrics: Metrics) -> None:
        self._hosted = hosted
        self._metrics = metrics
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._hosted.state_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End the watch; pictures that are being read now are given that long."""
        self._is_stopping.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                with exclusive_lock(self._hosted.state_folder / "watch.lock"):
                    FolderWatcher(self._hosted.collection).run(self._is_stopping, self._report, self._note)
            except (BlockingIOError, CollectionBusyError):
                # Another process watches; this one takes over when that has ended.
                self._is_stopping.wait(_RETRY_SECONDS)
            except Exception:
                # A full disk, or a retriever that cannot be read now: neither is for ever, and searches go on.
                _log.exception("collection %s cannot follow its folder now; trying again soon", self._hosted.name)
                self._is_stopping.wait(_RETRY_SECONDS)

    def _report(self, report: AddReport) -> None:
        counts = {change: count for change, count in report.counts.items() if change != "unchanged"}
        for change, count in counts.items():
            self._metrics.watched_changes.labels(self._hosted.name, change).inc(count)
        self._note(", ".join(f"{count:,} {change}" for change, count in counts.items() if count))
        for path, reason in report.skipped.items():
            self._note(f"skipped {path}: {reason}")

    def _note(self, text: str) -> None:
        _log.info("collection %s: %s", self._hosted.name, text)


class CollectionMetrics(Collector):
    """How many items each collection has, how large its index is, and whether a job works on it."""

    def __init__(self, hosted: Iterable[HostedCollection], running_jobs: dict[str, int]) -> None:
        self._hosted = tuple(hosted)
        self._running_jobs = running_jobs

    def collect(self) -> Iterator[Metric]:
        """Yield the present numbers."""
        items = GaugeMetricFamily("diptych_items", "Items of the collection.", labels=("collection",))
        index = GaugeMetricFamily("diptych_index_bytes", "Size of its search index.", labels=("collection",))
        jobs = GaugeMetricFamily("diptych_jobs_running", "Jobs that work on it.", labels=("collection",))
        for each in self._hosted:
            items.add_metric((each.name,), len(each.collection))
            index.add_metric((each.name,), each.index_bytes)
            jobs.add_metric((each.name,), self._running_jobs.get(each.name, 0))
        yield from (items, index, jobs)


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
                raise CollectionBusyError(f"{len(self._waiting)} writes wait for {self._collection.folder}; try again")
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
                outcomes.append(self._collection.item_of(record))
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
