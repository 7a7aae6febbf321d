"""Collections that are being served: whether they can be searched yet, and watches over folders."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from diptych.atomic_files import exclusive_lock
from diptych.collection import AddReport, Collection, FolderWatcher
from diptych.errors import CollectionBusyError
from diptych.service.operations.logging import Metrics
from diptych.service.security.limits import ConcurrencyLimit


@dataclass(frozen=True)
class HostedCollection:
    """A collection under the name that addresses call it by."""

    name: str
    collection: Collection
    # Small changes are made one after the other; those that wait hold no thread.
    writes: ConcurrencyLimit = field(default_factory=partial(ConcurrencyLimit, 1), repr=False, compare=False)

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
