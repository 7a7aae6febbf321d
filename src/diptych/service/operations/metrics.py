"""Numbers about the service, for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests, searches, clicks, uploads and changes over all processes; labels have few values.

    >>> from diptych.service.operations.metrics import Metrics
    >>> metrics = Metrics()
    >>> metrics.count_search("photos", no_good_match=False)
    >>> 'diptych_searches_total{collection="photos"} 1.0' in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests answered.", ("method", "route", "status"))
        self._seconds = Histogram(
            "diptych_request_seconds",
            "Time from request to the end of its answer.",
            ("route",),
            registry=self._registry,
            buckets=_SECONDS,
        )
        self._running = Gauge(
            "diptych_requests_running", "Requests being answered.", registry=self._registry, multiprocess_mode="livesum"
        )
        self._searches = self._counter("searches", "Searches answered.", ("collection",))
        self._no_good_match = self._counter("no_good_match", "Searches without a good match.", ("collection",))
        self.clicks = self._counter("clicks", "Clicks recorded.", ("collection",))
        self.uploads = self._counter("uploads", "Pictures uploaded.", ())
        self.watched_changes = self._counter(
            "watched_changes", "Pictures of a watched folder that were brought in.", ("collection", "change")
        )

    def begin_request(self) -> None:
        """Count a request that is now being answered."""
        self._running.inc()

    def end_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._running.dec()
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_search(self, collection: str, *, no_good_match: bool) -> None:
        """Count a search, and apart from that one in vain."""
        self._searches.labels(collection).inc()
        if no_good_match:
            self._no_good_match.labels(collection).inc()

    def text(self, beside: Iterable[Collector] = ()) -> bytes:
        """Return everything in the text format of Prometheus, with what other collectors add."""
        registry = self._registry
        if os.environ.get(SHARED_FOLDER_VARIABLE):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        further = CollectorRegistry()
        for collector in beside:
            further.register(collector)
        return generate_latest(registry) + generate_latest(further)

    def _counter(self, name: str, help: str, labels: tuple[str, ...]) -> Counter:
        return Counter(f"diptych_{name}", help, labels, registry=self._registry)
