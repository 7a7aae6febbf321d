"""Collections that are being served: names, whether they can be searched yet, watches over folders, and numbers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cachetools import LRUCache
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from diptych.collection import AddReport, Collection, FolderWatcher
from diptych.collection.storage.place import write_lock
from diptych.errors import CollectionBusyError
from diptych.service.operations.logging import Metrics
from diptych.service.operations.write_queue import WriteQueue

_KEPT_PAST = 2


class _PastCollections(LRUCache[tuple[str, int], Collection]):
    """Collections as they were, each closed when it is let go; who still uses one goes on."""

    def popitem(self) -> tuple[tuple[str, int], Collection]:
        """Let go of the one that was not used for longest."""
        key, collection = super().popitem()
        collection.close()
        return key, collection


@dataclass(frozen=True)
class HostedCollection:
    """A collection under the name that addresses call it by."""

    name: str
    collection: Collection
    _past: _PastCollections = field(default_factory=lambda: _PastCollections(_KEPT_PAST), repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def at(self, as_of: str | None) -> HostedCollection:
        """Return the collection as it was at a moment; the last few of these are kept."""
        if as_of is None:
            return self
        # Asked each time: what was kept a minute ago may be gone on purpose.
        self.collection.version_at(as_of)
        key = as_of, self.collection.history()[-1].number
        with self._lock:
            if key not in self._past:
                self._past[key] = self.collection.at(as_of)
            return HostedCollection(self.name, self._past[key])

    @cached_property
    def writes(self) -> WriteQueue:
        """Where small changes wait for the next commit."""
        return WriteQueue(self.collection)

    @property
    def state_folder(self) -> Path:
        """Where the service keeps what belongs to this collection: the click log, jobs, maps."""
        return self.collection.home / "service"

    @property
    def index_bytes(self) -> int:
        """The size of the search indexes on disk."""
        return sum(path.stat().st_size for path in (self.collection.folder / "index").rglob("*") if path.is_file())


_RETRY_SECONDS = 5.0
_log = logging.getLogger("diptych.service")


class Readiness:
    """Asks each collection in the background for all that a page shows, so that no visitor waits for it.

    One that could not be searched is asked again, some seconds later, when someone wants to know.
    """

    def __init__(self, hosted: Sequence[HostedCollection]) -> None:
        self._hosted = hosted
        self._states = {each.name: "getting ready" for each in hosted}
        self._thread: threading.Thread | None = None
        self._tried_at = 0.0

    def start(self) -> None:
        """Begin in the background."""
        self._tried_at = time.monotonic()
        self._thread = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until every collection was tried."""
        if self._thread is not None:
            self._thread.join(seconds)

    def states(self) -> dict[str, str]:
        """Return "ready" or the reason why not, for each collection."""
        states = dict(self._states)
        is_done = self._thread is not None and not self._thread.is_alive()
        is_due = is_done and time.monotonic() - self._tried_at > _RETRY_SECONDS
        if is_due and any(state != "ready" for state in states.values()):
            self.start()
        return states

    def _warm_up(self) -> None:
        for each in self._hosted:
            if self._states[each.name] != "ready":
                self._states[each.name] = self._tried(each)

    def _tried(self, hosted: HostedCollection) -> str:
        try:
            for target in ("images", "texts"):
                hosted.collection.search("a picture", 1, target=target)
            hosted.collection.facets()
            hosted.collection.suggestions("")
        except Exception:
            # Whatever it is, the service goes on for the other collections; clients see no paths of this machine.
            _log.exception("collection %s cannot be searched", hosted.name)
            return "cannot be searched; the log of the service says why"
        return "ready"


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
                with write_lock(self._hosted.state_folder / "watch.lock"):
                    FolderWatcher(self._hosted.collection).run(self._is_stopping, self._report, self._note)
            except CollectionBusyError:
                # Another process watches; this one takes over when that has ended.
                self._is_stopping.wait(_RETRY_SECONDS)
            except Exception:
                # A full disk, or a retriever that cannot be read now: neither is for ever, and searches go on.
                _log.exception("collection %s cannot follow its folder now; trying again soon", self._hosted.name)
                self._is_stopping.wait(_RETRY_SECONDS)

    def _report(self, report: AddReport) -> None:
        counts = {
            "added": report.added,
            "updated": report.updated,
            "renamed": report.renamed,
            "removed": len(report.removed),
            "skipped": len(report.skipped),
        }
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
        away = GaugeMetricFamily("diptych_storage_away_seconds", "Since its storage answered.", labels=("collection",))
        for each in self._hosted:
            items.add_metric((each.name,), len(each.collection))
            index.add_metric((each.name,), each.index_bytes)
            jobs.add_metric((each.name,), self._running_jobs.get(each.name, 0))
            if (seconds := each.collection.storage_away_seconds) is not None:
                away.add_metric((each.name,), seconds)
        yield from (items, index, jobs, away)
