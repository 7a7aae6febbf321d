"""Numbers about collections, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from diptych.service.hosted_collection import HostedCollection


class CollectionNumbers(Collector):
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
