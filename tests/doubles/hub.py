"""A hub of models on this machine, with the answers of the real one, and the faults of lines and proxies."""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee" + 34 * "0"
LATER_COMMIT = "decaf" + 35 * "0"
_LARGE = 1_000_000
_BLOCK_BYTES = 1 << 16


@dataclass
class RemoteFile:
    """A file: bytes, or a generator of ``size`` of them; large ones lie on the other server."""

    content: bytes = b""
    size: int = -1
    make: Callable[[int, int], bytes] | None = None  # the bytes of a half-open interval
    is_large: bool | None = None

    def __post_init__(self) -> None:
        self.size = len(self.content) if self.make is None else self.size
        self.is_large = self.size >= _LARGE if self.is_large is None else self.is_large
        self.sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % self.size)
        for start in range(0, self.size, 1 << 20):
            block = self.part(start, min(start + (1 << 20), self.size))
            self.sha256.update(block)
            git.update(block)
        self.git = git.hexdigest()

    def part(self, start: int, end: int) -> bytes:
        return self.content[start:end] if self.make is None else self.make(start, end)

    @property
    def etag(self) -> str:
        return self.sha256.hexdigest() if self.is_large else self.git


@dataclass
class Faults:
    """What goes wrong: with every answer, or with the next ones, which are used up."""

    breaks: list[int] = field(default_factory=list)  # close after so many bytes of a body, one for each answer
    flip: str = ""  # a byte of this file is another one
    flips: int = 1_000
    short: str = ""  # this file's body ends early, as its length says
    ignore_range: bool = False
    compress: bool = False
    statuses: list[int] = field(default_factory=list)  # of the next requests
    retry_after: str | None = None
    without: tuple[str, ...] = ()  # headers that are missing
    gated: bool = False
    names: tuple[str, ...] = ()  # further names in the list of files
    disagree: str = ""  # the list has another size of this file
    wait: threading.Event | None = None  # a body waits in the middle until this is set


@dataclass(frozen=True)
class Request:
    """A request as it came, and the bytes of the body that were sent for it."""

    server: str
    method: str
    path: str
    headers: Mapping[str, str]


class FakeHub:
    """Repositories by name and commit, what was asked, and what goes wrong."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, dict[str, RemoteFile]]] = {}
        self.heads: dict[str, str] = {}
        self.cards: dict[str, dict[str, Any]] = {}
        self.faults = Faults()
        self.requests: list[Request] = []
        self.sent = 0
        self.redirects = True
        self.page_size = 4
        self.lock = threading.Lock()
        self.endpoint = ""
        self.storage = ""

    def add(
        self,
        repository: str,
        files: Mapping[str, RemoteFile | bytes],
        *,
        commit: str = COMMIT,
        licence: str | None = "mit",
    ) -> None:
        """Add a repository, or a later commit of it."""
        kept = {path: file if isinstance(file, RemoteFile) else RemoteFile(file) for path, file in files.items()}
        self.commits.setdefault(repository, {})[commit] = kept
        self.heads[repository] = commit
        self.cards[repository] = {} if licence is None else {"license": licence}

    def asked(self, method: str = "GET", containing: str = "") -> list[str]:
        """Return the paths of the requests that came."""
        return [one.path for one in self.requests if one.method == method and containing in one.path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub
    role: str

    def log_message(self, format: str, *arguments: Any) -> None:
        """Stay silent."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub, url = self.hub, urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with hub.lock:
            hub.requests.append(Request(self.role, self.command, self.path, headers))
            status = hub.faults.statuses.pop(0) if hub.faults.statuses else 0
        if status:
            extra = {} if hub.faults.retry_after is None else {"Retry-After": hub.faults.retry_after}
            return self._send(status, b"busy", extra)
        path = unquote(url.path)
        if tree := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/(.+)", path):
            return self._tree(tree[1], tree[2], int(parse_qs(url.query).get("cursor", ["0"])[0]))
        if info := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            return self._info(info[1], info[2] or "main")
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(found[1], found[2], found[3])
        if self.role == "storage" and (stored := re.fullmatch(r"/cdn/([^/]+/[^/]+)/([0-9a-f]{40})/(.+)", path)):
            return self._body(hub.commits[stored[1]][stored[2]][stored[3]], stored[3], {})
        return self._missing("EntryNotFound")

    def _commit(self, repository: str, revision: str) -> str | None:
        known = self.hub.commits.get(repository, {})
        return self.hub.heads.get(repository) if revision == "main" else revision if revision in known else None

    def _info(self, repository: str, revision: str) -> None:
        commit = self._commit(repository, revision)
        if commit is None:
            return self._missing("RevisionNotFound" if repository in self.hub.commits else "RepoNotFound")
        files = self.hub.commits[repository][commit]
        return self._json(
            {
                "id": repository,
                "sha": commit,
                "siblings": [{"rfilename": path} for path in files],
                "private": False,
                "gated": "manual" if self.hub.faults.gated else False,
                "tags": [],
                "cardData": self.hub.cards[repository],
            }
        )

    def _tree(self, repository: str, revision: str, cursor: int) -> None:
        commit = self._commit(repository, revision)
        if commit is None:
            return self._missing("RevisionNotFound")
        faults = self.hub.faults
        files = {**self.hub.commits[repository][commit], **{name: RemoteFile(b"{}") for name in faults.names}}
        entries = [self._entry(path, file) for path, file in sorted(files.items())]
        page = entries[cursor : cursor + self.hub.page_size]
        after = cursor + self.hub.page_size
        path = urlsplit(self.path).path
        link = f'<{self.hub.endpoint}{path}?recursive=true&cursor={after}>; rel="next"'
        return self._json(page, {"Link": link} if after < len(entries) else {})

    def _entry(self, path: str, file: RemoteFile) -> dict[str, Any]:
        size = file.size + (path == self.hub.faults.disagree)
        entry: dict[str, Any] = {"type": "file", "path": path, "size": size, "oid": file.git}
        if file.is_large:
            entry["lfs"] = {"oid": file.sha256.hexdigest(), "size": size, "pointerSize": 135}
            entry["xetHash"] = file.sha256.hexdigest()
        return entry

    def _resolve(self, repository: str, revision: str, path: str) -> None:
        commit = self._commit(repository, revision)
        file = self.hub.commits.get(repository, {}).get(commit or "", {}).get(path)
        if file is None or commit is None:
            return self._missing("EntryNotFound")
        if self.hub.faults.gated and self.headers.get("Authorization") != "Bearer let-me-in":
            return self._send(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        headers = {"X-Repo-Commit": commit, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        if file.is_large:
            headers["X-Xet-Hash"] = file.etag
        if file.is_large and self.hub.redirects:
            headers |= {
                "X-Linked-Etag": f'"{file.etag}"',
                "X-Linked-Size": str(file.size),
                "Location": f"{self.hub.storage}/cdn/{repository}/{commit}/{path}",
            }
            return self._send(302, b"", headers)
        return self._body(file, path, headers)

    def _body(self, file: RemoteFile, path: str, headers: dict[str, str]) -> None:
        faults = self.hub.faults
        start, end, status = 0, file.size, 200
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked is not None and not faults.ignore_range:
            start, status = int(asked[1]), 206
            if start >= file.size:
                return self._send(416, b"", {"Content-Range": f"bytes */{file.size}"})
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
        if path == faults.short:
            end -= 1
        if faults.compress and self.command == "GET":
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(end - start)
        self._head(status, headers)
        if self.command == "HEAD":
            return None
        stop = end
        with self.hub.lock:
            if faults.breaks:
                stop = min(end, start + faults.breaks.pop(0))
            flip = faults.flips > 0 and path == faults.flip
            faults.flips -= flip
        for place in range(start, stop, _BLOCK_BYTES):
            block = file.part(place, min(place + _BLOCK_BYTES, stop))
            if flip and place <= file.size // 2 < place + len(block):
                middle = file.size // 2 - place
                block = block[:middle] + bytes([block[middle] ^ 1]) + block[middle + 1 :]
            if faults.wait is not None and place > file.size // 2:
                faults.wait.wait(60)
            try:
                self.wfile.write(block)
            except OSError:
                stop = -1
                break
            with self.hub.lock:
                self.hub.sent += len(block)
        self.close_connection = self.close_connection or stop < end
        return None

    def _json(self, content: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _missing(self, code: str) -> None:
        self._send(404, b"", {"X-Error-Code": code})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._head(status, {"Content-Length": str(len(body)), **headers})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name not in self.hub.faults.without:
                self.send_header(name, value)
        self.end_headers()


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    """Run a hub, and a second server for large files, which has another origin."""
    hub = FakeHub()
    servers = []
    for role, host in (("hub", "127.0.0.1"), ("storage", "localhost")):
        handler = type(f"{role.title()}Handler", (_Handler,), {"hub": hub, "role": role})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        setattr(hub, "endpoint" if role == "hub" else "storage", f"http://{host}:{server.server_port}")
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


# Of a length that no range begins at by chance, so that bytes at a wrong place differ.
_NOISE = random.Random(0).randbytes(1_000_003)


def noise(start: int, end: int) -> bytes:
    """Return a part of endless random bytes."""
    first = start % len(_NOISE)
    return (_NOISE * ((first + end - start) // len(_NOISE) + 1))[first : first + end - start]


def onnx_repository(*, size: int = 3_000_000) -> dict[str, RemoteFile]:
    """Return the files of a model of two ONNX towers, with pickles beside that are never fetched."""
    return {
        "onnx/vision_model.onnx": RemoteFile(size=size, make=noise),
        "onnx/text_model.onnx": RemoteFile(size=size // 2 + 1, make=lambda start, end: noise(start + 8, end + 8)),
        "onnx/text_model_fp16.onnx": RemoteFile(b"half"),
        "onnx/vision_model_fp16.onnx": RemoteFile(b"half a picture"),
        "onnx/model.onnx": RemoteFile(b"both towers in one"),
        "tokenizer.json": RemoteFile(b'{"version": "1.0"}'),
        "preprocessor_config.json": RemoteFile(b'{"size": 32}'),
        "config.json": RemoteFile(b'{"model_type": "clip"}'),
        "README.md": RemoteFile(b"# A model"),
        "pytorch_model.bin": RemoteFile(b"pickle"),
        "modeling.py": RemoteFile(b"raise SystemExit"),
    }
