"""Forwarding requests that write to the one writer: another process of this service."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from diptych.service.operations.logging import REQUEST_ID, ROUTE_HEADER
from diptych.service.problems import HttpMiddleware, Problem
from diptych.service.security.limits import client_leaves

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# What changes nothing, or only what every process may write: the log of clicks, uploads, the browser's own cookie.
_OWN = re.compile(
    r"/v1/(?:session|uploads|collections/[^/]+/(?:search|search/picture|explanations|clicks))/?", re.IGNORECASE
)
# Jobs are processes of the writer, which alone knows how far they are.
_JOBS = re.compile(r"/v1/collections/[^/]+/jobs(?:/[^/]+)?/?")

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer"}
    | {b"transfer-encoding", b"upgrade", b"expect", b"x-forwarded-for", b"x-forwarded-proto", b"x-request-id"}
)

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 120.0
# The server of the reader adds these itself.
_OWN_ANSWER_HEADERS = _HOP_BY_HOP | {b"date", ROUTE_HEADER.lower().encode()}


class WriterProxyMiddleware(HttpMiddleware):
    """Hands requests that write to the writer process and its answers back, both as they arrive.

    The writer checks who may write by itself; it is told who the client is.
    """

    def __init__(self, app: ASGIApp, socket: Path) -> None:
        super().__init__(app)
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket), limits=httpx.Limits(max_connections=64)),
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
        )

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_for_writer(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            await self._forward(scope, receive, send)
        except httpx.ConnectError:
            raise _writer_unavailable("nothing was written; try again in a moment") from None
        except httpx.TransportError:
            raise _writer_unavailable("look whether it was written before trying again") from None

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        query, sent = scope.get("query_string", b""), dict(scope["headers"])
        has_body = b"transfer-encoding" in sent or sent.get(b"content-length", b"0") != b"0"
        path = scope["raw_path"] + (b"?" + query if query else b"")
        is_read = asyncio.Event()
        request = self._client.build_request(
            scope["method"],
            httpx.URL("http://writer").copy_with(raw_path=path),
            headers=_headers(scope),
            content=_body(receive, is_read) if has_body else None,
        )
        if not has_body:
            is_read.set()
        try:
            answer = await self._sent(request, receive, is_read)
        except asyncio.CancelledError:
            # The server ends and has lost its patience with this request; it would call that an error of its own.
            raise _writer_unavailable("look whether it was written before trying again") from None
        try:
            scope["state"]["route_template"] = answer.headers.get(ROUTE_HEADER)
            headers = [(name, value) for name, value in answer.headers.raw if name.lower() not in _OWN_ANSWER_HEADERS]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
            async for chunk in answer.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await answer.aclose()

    async def _sent(self, request: httpx.Request, receive: Receive, is_read: asyncio.Event) -> httpx.Response:
        """Return the answer of the writer, which hears of it when the client leaves before."""

        async def leaving() -> None:
            await is_read.wait()
            await client_leaves(receive)

        sending, left = asyncio.ensure_future(self._client.send(request, stream=True)), asyncio.ensure_future(leaving())
        try:
            await asyncio.wait((sending, left), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ClientDisconnect
            return await sending
        finally:
            sending.cancel()
            left.cancel()


def is_for_writer(method: str, path: str) -> bool:
    """Say whether the writer must answer a request.

    >>> from diptych.service.operations.writer_proxy import is_for_writer
    >>> is_for_writer("PATCH", "/v1/collections/c/items/1"), is_for_writer("POST", "/v1/collections/c/search")
    (True, False)
    """
    if _JOBS.fullmatch(path):
        return True
    if method in _SAFE_METHODS or not path.startswith("/v1/"):
        return False
    return not _OWN.fullmatch(path) or (method == "DELETE" and path.startswith("/v1/collections/"))


def _headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    client = scope.get("client")
    address = (client[0] if client else "unknown").encode()
    return [
        *((name, value) for name, value in scope["headers"] if name not in _HOP_BY_HOP),
        (b"x-forwarded-for", address),
        (b"x-forwarded-proto", scope["scheme"].encode()),
        (REQUEST_ID.lower().encode(), scope["state"]["request_id"].encode()),
    ]


async def _body(receive: Receive, is_read: asyncio.Event) -> AsyncIterator[bytes]:
    message: dict[str, Any] = {"more_body": True}
    while message.get("more_body", False):
        message = dict(await receive())
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
    is_read.set()


def _writer_unavailable(what_to_do: str) -> Problem:
    detail = f"The process that writes is starting again; {what_to_do}."
    return Problem(503, "busy", detail, headers={"Retry-After": "2"})
