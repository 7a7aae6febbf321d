"""An HTTP server on this machine that misbehaves as it is told, and remembers what it was asked."""

from __future__ import annotations

import io
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class RemoteFile:
    """One file and how it is served; each request takes the next entry of the lists."""

    content: bytes
    etag: str | None = '"first"'
    last_modified: str | None = None
    breaks: list[int | None] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    knows_ranges: bool = True
    knows_if_range: bool = True
    tells_length: bool = True
    stalls: float = 0.0
    requests: list[dict[str, str]] = field(default_factory=list)

    @property
    def asked_ranges(self) -> list[str | None]:
        return [request.get("Range") for request in self.requests]


class BreakingServer:
    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.files: dict[str, RemoteFile] = {}
        self.address = f"http://127.0.0.1:{server.server_port}"

    def add(self, name: str, content: bytes, **behaviour: Any) -> RemoteFile:
        self.files[f"/{name}"] = RemoteFile(content, **behaviour)
        return self.files[f"/{name}"]

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: BreakingServer

    def do_GET(self) -> None:
        file = self.owner.files.get(self.path)
        if file is None:
            self.send_error(404)
            return
        file.requests.append(dict(self.headers.items()))
        if file.statuses:
            self.send_response(file.statuses.pop(0))
            for name, value in file.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send(file)

    def _send(self, file: RemoteFile) -> None:
        start = self._start(file)
        if start is not None and start >= len(file.content):
            self.send_error(416)
            return
        body = file.content[start or 0 :]
        self.send_response(200 if start is None else 206)
        if file.etag is not None:
            self.send_header("ETag", file.etag)
        if file.last_modified is not None:
            self.send_header("Last-Modified", file.last_modified)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(file.content) - 1}/{len(file.content)}")
        if file.tells_length:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        sent = file.breaks.pop(0) if file.breaks else None
        self.wfile.write(body if sent is None else body[:sent])
        self.wfile.flush()
        if sent is not None and file.stalls:
            time.sleep(file.stalls)

    def _start(self, file: RemoteFile) -> int | None:
        wanted = self.headers.get("Range")
        if wanted is None or not file.knows_ranges:
            return None
        validator = file.etag if file.etag and not file.etag.startswith("W/") else file.last_modified
        if file.knows_if_range and self.headers.get("If-Range") not in (None, validator):
            return None
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def breaking_server() -> Iterator[BreakingServer]:
    class Handler(_Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.owner = BreakingServer(server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield Handler.owner
    finally:
        server.shutdown()
        server.server_close()


def zip_of(files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()
