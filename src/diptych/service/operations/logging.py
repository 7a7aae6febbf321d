"""The log of the service, its formats, one line and one count for each request, and its numbers for Prometheus."""

from __future__ import annotations

import logging
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterable
from typing import Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.processors import CallsiteParameter, CallsiteParameterAdder
from structlog.stdlib import ProcessorFormatter

from diptych.service.problems import HttpMiddleware

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests, searches, clicks, uploads and changes over all processes; labels have few values.

    >>> from diptych.service.operations.logging import Metrics
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


LogFormat = Literal["text", "json"]


def configure_logging(format: LogFormat, *, quiet: bool = False) -> None:
    """Send the log of the service to stderr; ``quiet`` keeps warnings and errors.

    So is what libraries warn of, and what ends a thread: Python would write it there in lines of its own.
    """
    lines = [structlog.processors.EventRenamer("message"), structlog.processors.JSONRenderer(ensure_ascii=False)]
    text = [structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.ExtraAdder(),
                CallsiteParameterAdder({CallsiteParameter.PROCESS}),
                structlog.processors.TimeStamper(fmt="iso"),
            ],
            processors=[
                ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                *(lines if format == "json" else text),
            ],
        )
    )
    level = logging.WARNING if quiet else logging.INFO
    for name, least in (("diptych", level), ("uvicorn", logging.WARNING), ("", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(least)
        logger.propagate = False
    logging.getLogger("uvicorn.error").addFilter(_is_ours)
    logging.captureWarnings(True)
    threading.excepthook = _log_end_of_thread


def _log_end_of_thread(what: threading.ExceptHookArgs) -> None:
    if what.exc_value is not None and not isinstance(what.exc_value, SystemExit):
        trace = what.exc_type, what.exc_value, what.exc_traceback
        name = "" if what.thread is None else what.thread.name
        logging.getLogger("diptych.service").error("a defect ended the thread %s", name, exc_info=trace)


def _is_ours(record: logging.LogRecord) -> bool:
    # What is no HTTP anyone can send as often as they like, and nobody here can mend what would be said of it: that it
    # is none, or that there is no way to answer it.
    broken = record.exc_info is not None and getattr(record.exc_info[0], "__name__", "") == "LocalProtocolError"
    return not broken and "Invalid HTTP request" not in record.getMessage()


REQUEST_ID = "X-Request-ID"
_log = logging.getLogger("diptych.service.requests")
_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NOT_ANSWERED = 499


class RequestLogMiddleware(HttpMiddleware):
    """Gives each request a name, and records what became of it, by its route's template: no secret and no query."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        given = Headers(scope=scope).get(REQUEST_ID, "")
        name = given if _USABLE_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = name
        status, sent, is_recorded = _NOT_ANSWERED, 0, False

        def record() -> None:
            nonlocal is_recorded
            if not is_recorded:
                is_recorded = True
                self._record(scope, name, status, sent, time.perf_counter() - started)

        async def recorded_send(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = name
            else:
                sent += len(message.get("body", b""))
                if not message.get("more_body", False):
                    # Whoever has the whole answer finds it counted.
                    record()
            await send(message)

        self._metrics.begin_request()
        try:
            await self._app(scope, receive, recorded_send)
        finally:
            record()

    def _record(self, scope: Scope, name: str, status: int, sent: int, seconds: float) -> None:
        route = route_template(scope)
        self._metrics.end_request(scope["method"], route, status, seconds)
        client = scope.get("client")
        fields = {
            "method": scope["method"],
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 2),
            "bytes": sent,
            "client": client[0] if client else "",
            "request_id": name,
        }
        _log.info("request", extra=fields)


def route_template(scope: Scope) -> str:
    """Return the template of the route that took a request, such as ``/v1/collections/{collection}``."""
    return str(getattr(scope.get("route"), "path", None) or "(none)")
