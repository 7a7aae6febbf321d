"""Getting one file over a connection that may break, and going on where it stopped."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http.client import HTTPException
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from diptych._version import __version__
from diptych.atomic_files import atomic_write
from diptych.errors import MissingDataError

Progress = Callable[[int, int | None], None]
_BLOCK_BYTES = 1 << 18
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE_NOT_SATISFIABLE = 416
_LONGEST_PAUSE = 60.0
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True)
class RemoteVersion:
    """Which version of the remote file the bytes are of: its validator (an ETag or a date) and its size."""

    url: str
    validator: str = ""
    size: int | None = None


class GuardedRedirects(HTTPRedirectHandler):
    """Follows a redirection to the same server or to a public address, and never from HTTPS to HTTP.

    Whoever answers for the address of a data set could otherwise have this machine ask others of its own network.
    """

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Return the request that follows, or raise."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if old.scheme == "https" and new.scheme != "https":
            raise MissingDataError(f"{req.full_url} sends on to {newurl}, which is not encrypted; not followed")
        if (old.hostname, old.port) != (new.hostname, new.port) and not _is_public(new.hostname or ""):
            raise MissingDataError(f"{req.full_url} sends on to {newurl}, which is no public address; not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_public(host: str) -> bool:
    """Return True if a name stands for public addresses alone; where it stands for none, connecting says so."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return all(ip_address(str(address[4][0]).partition("%")[0]).is_global for address in found)


class PartialFile:
    """The bytes got so far, in ``<name>.part``, and the version they belong to, in ``<name>.part.json``.

    Bytes of two versions are never mixed: a new version starts with an empty file, and is noted after the old bytes are
    gone and before the first new ones come, so that a run killed at any moment can be continued.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self.path = target.with_name(f"{target.name}.part")
        self._state_path = target.with_name(f"{target.name}.part.json")

    @property
    def size(self) -> int:
        """The number of bytes that are here."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def version(self) -> RemoteVersion | None:
        """The version that the bytes are of; None when there are none that can be trusted."""
        try:
            return RemoteVersion(**json.loads(self._state_path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def restart(self, version: RemoteVersion) -> None:
        """Drop what is here and expect the bytes of ``version``."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A link of that name goes; what it leads to is left alone.
        self.path.unlink(missing_ok=True)
        self.path.open("xb").close()
        with atomic_write(self._state_path) as draft:
            draft.write_text(json.dumps(asdict(version)), encoding="utf-8")

    def append(self, block: bytes) -> None:
        """Add bytes at the end."""
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(self.path, flags), "ab") as file:
            file.write(block)

    def discard(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
        self._state_path.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the file its name, at once and whole."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(self.path, self._target)
        self._state_path.unlink(missing_ok=True)


def check_free_space(folder: Path, wanted: int) -> None:
    """Raise unless ``wanted`` more bytes fit on the disk of ``folder``."""
    free = shutil.disk_usage(folder).free
    if wanted > free:
        raise MissingDataError(
            f"{folder} has {free:,} bytes free, but {wanted:,} more are needed; make room or choose another folder"
        )


class Transfer:
    """Gets ``url`` into ``target``, going on where it stopped, in this run or an earlier one.

    A broken or stalled connection is tried again after a pause that doubles each time; every byte of progress starts
    the count of ``attempts`` anew. The rest is asked for with Range and If-Range (RFC 9110, section 13.1.5), so a file
    that changed meanwhile, or a server that knows no ranges, sends the whole file again. ``size`` is what is expected,
    where it is known; ``timeout`` is the longest silence, ``pause`` the first wait, both in seconds.
    """

    def __init__(
        self,
        url: str,
        target: Path,
        *,
        size: int | None = None,
        timeout: float = 30.0,
        attempts: int = 6,
        pause: float = 1.0,
        progress: Progress | None = None,
    ) -> None:
        self.url = url
        self.target = target
        self.size = size
        self.timeout = timeout
        self.attempts = attempts
        self.pause = pause
        self._part = PartialFile(target)
        self._progress = progress or (lambda done, total: None)
        self._ended_well = False
        self._furthest = self._part.size

    def run(self) -> PartialFile:
        """Return the complete file, still under its provisional name, to be checked and finished."""
        failures = 0
        while not self._is_complete():
            try:
                self._resume()
            except (OSError, HTTPException) as error:
                if isinstance(error, MissingDataError):
                    raise
                failures = 1 if self._part.size > self._furthest else failures + 1
                self._furthest = max(self._furthest, self._part.size)
                if failures >= self.attempts:
                    raise MissingDataError(
                        f"{self.url} could not be got: {_reason(error)}; {self._part.size:,} bytes are kept, so run "
                        "the command again to go on"
                    ) from error
                time.sleep(self._wait(error, failures))
        return self._part

    def _is_complete(self) -> bool:
        version = self._part.version
        if version is None or version.url != self.url:
            return False
        return self._ended_well or (version.size is not None and self._part.size == version.size)

    def _resume(self) -> None:
        have = self._resumable_bytes()
        with self._open(have) as response:
            version = self._announced(response)
            if not self._continues(response, version, have):
                self._part.restart(version)
                have = 0
            check_free_space(self.target.parent, (version.size or have) - have)
            self._progress(have, version.size)
            # What has arrived is taken at once: waiting for whole blocks would lose bytes to a silence.
            while block := response.read1(_BLOCK_BYTES):
                self._write(block)
                have += len(block)
                self._progress(have, version.size)
        if version.size is not None and have != version.size:
            if have > version.size:
                self._part.discard()
            raise ConnectionError(f"the connection ended after {have:,} of {version.size:,} bytes")
        self._ended_well = True

    def _write(self, block: bytes) -> None:
        try:
            self._part.append(block)
        except OSError as error:
            raise MissingDataError(
                f"cannot write {self._part.path}: {error.strerror}; make room or choose another folder"
            ) from error

    def _resumable_bytes(self) -> int:
        version, have = self._part.version, self._part.size
        # Without a validator nobody could tell that the file had changed in between.
        if version is None or version.url != self.url or not version.validator:
            return 0
        return have if version.size is None or have <= version.size else 0

    def _open(self, have: int) -> Any:
        headers = {"User-Agent": f"diptych/{__version__}", "Accept-Encoding": "identity"}
        version = self._part.version
        if have and version is not None:
            headers |= {"Range": f"bytes={have}-", "If-Range": version.validator}
        try:
            return build_opener(GuardedRedirects).open(Request(self.url, headers=headers), timeout=self.timeout)
        except HTTPError as error:
            error.close()
            if error.code == _RANGE_NOT_SATISFIABLE:
                self._part.discard()
            elif error.code not in _TRANSIENT:
                raise MissingDataError(
                    f"{self.url} answers {error.code} {error.reason}; the file may have moved, see the data set's home "
                    "page"
                ) from error
            raise

    def _announced(self, response: Any) -> RemoteVersion:
        """Return the version that a response says it is of."""
        length = response.headers.get("Content-Length", "")
        if response.status == 206:
            length = self._start_and_total(response)[1]
        size = int(length) if length.isdigit() else self.size
        if self.size is not None and size != self.size:
            raise MissingDataError(
                f"{self.url} has {size:,} bytes instead of {self.size:,}: it is not the file that is known; see the "
                "data set's home page"
            )
        etag = response.headers.get("ETag", "")
        # A weak tag does not promise equal bytes, and If-Range does not take one.
        validator = etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified", "")
        return RemoteVersion(self.url, validator, size)

    def _continues(self, response: Any, version: RemoteVersion, have: int) -> bool:
        known = self._part.version
        if response.status != 206:
            return False
        is_same = (
            known is not None and version.validator in ("", known.validator) and known.size in (None, version.size)
        )
        if is_same and self._start_and_total(response)[0] == have:
            return True
        self._part.discard()
        raise ConnectionError("the server sent another part than was asked for")

    def _start_and_total(self, response: Any) -> tuple[int, str]:
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if found is None:
            self._part.discard()
            raise ConnectionError("the server sent a part without saying which")
        return int(found[1]), found[2]

    def _wait(self, error: Exception, failures: int) -> float:
        asked = error.headers.get("Retry-After", "") if isinstance(error, HTTPError) and error.headers else ""
        wanted = float(asked) if asked.isdigit() else self.pause * 2 ** (failures - 1)
        return min(wanted, _LONGEST_PAUSE)


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error or type(error).__name__)
