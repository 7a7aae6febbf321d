"""Collections that are being served: their names, whether they can be searched yet, and their numbers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from diptych.collection import Collection


@dataclass(frozen=True)
class HostedCollection:
    """A collection under the name that addresses call it by."""

    name: str
    collection: Collection

    @property
    def state_folder(self) -> Path:
        """Where the service keeps what belongs to this collection: the click log, jobs, maps."""
        return self.collection.folder / "service"

    @property
    def index_bytes(self) -> int:
        """The size of the search indexes on disk."""
        return sum(path.stat().st_size for path in (self.collection.folder / "index").rglob("*") if path.is_file())


_log = logging.getLogger("diptych.service")


class Readiness:
    """Asks each collection once in the background for all that a page shows, so that no visitor waits for it."""

    def __init__(self, hosted: Sequence[HostedCollection]) -> None:
        self._hosted = hosted
        self._states = {each.name: "getting ready" for each in hosted}
        self._thread = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)

    def start(self) -> None:
        """Begin in the background."""
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until every collection was tried."""
        self._thread.join(seconds)

    def states(self) -> dict[str, str]:
        """Return "ready" or the reason why not, for each collection."""
        return dict(self._states)

    def _warm_up(self) -> None:
        for each in self._hosted:
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
