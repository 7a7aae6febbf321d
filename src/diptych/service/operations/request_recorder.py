"""One line in the log and one count for each request."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.operations.metrics import Metrics

REQUEST_ID = "X-Request-ID"
# From the writer to the readers, which record for it.
ROUTE_HEADER = "X-Diptych-Route"
_log = logging.getLogger("diptych.service.requests")
_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NO_ROUTE = "(none)"
_NOT_ANSWERED = 499


class RequestRecorder:
    """Gives each request a name, and records what became of it.

    Of the address only the route's template is recorded, and nothing of headers and bodies, so that no secret and no
    query gets into the log.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, *, is_recording: bool = True) -> None:
        self._app = app
        self._metrics = metrics
        self._is_recording = is_recording

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and record it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        name = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = name
        status, sent = _NOT_ANSWERED, 0

        async def recorded_send(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = name
                if not self._is_recording:
                    headers[ROUTE_HEADER] = route_template(scope)
            else:
                sent += len(message.get("body", b""))
            await send(message)

        if self._is_recording:
            self._metrics.begin_request()
        try:
            await self._app(scope, receive, recorded_send)
        finally:
            self._record(scope, name, status, sent, time.perf_counter() - started)

    def _record(self, scope: Scope, name: str, status: int, sent: int, seconds: float) -> None:
        if not self._is_recording:
            return
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
        _log.info("request", extra={"fields": fields})


def route_template(scope: Scope) -> str:
    """Return the template of the route that took a request, such as ``/v1/collections/{collection}``."""
    template = scope.get("state", {}).get("route_template")
    if template is not None:
        return str(template)
    route = scope.get("route")
    return str(getattr(route, "path", None) or _NO_ROUTE)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _USABLE_ID.fullmatch(given) else secrets.token_hex(8)
