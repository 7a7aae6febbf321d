"""A prefix of an object storage, with conditional writes, and the lease of a collection's one writer made of them."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from diptych.atomic_files import atomic_write
from diptych.errors import (
    CollectionBusyError,
    InvalidInputError,
    MissingPackageError,
    StorageConflictError,
    StorageError,
)

# How long a call may take, and how long it is tried again: those that carry little, and those that carry much. One that
# a frozen storage does not answer is given up after the first time of it, or two of them.
_QUICK, _TRANSFER = (4, 5), (15, 15)
_CONNECT_SECONDS, _RETRIES = 3, 3
# The time of a call bounds that of what it carries: large objects come piece by piece.
_PIECE = 8 << 20
_TRANSFERS_AT_ONCE = 8
_DELETED_AT_ONCE = 500


@dataclass(frozen=True)
class ObjectFacts:
    """The size of an object, the tag that changes with its content, and when it was written."""

    size: int
    tag: str
    modified: datetime


class Bucket:
    """The objects under an address such as ``s3://bucket/photos``.

    Credentials, region and endpoint come from the environment, by the names that the storage's own tools use. A call
    that the storage does not answer is tried again and given up after seconds, with a :class:`StorageError`.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if not parts.netloc or not parts.path.strip("/"):
            raise InvalidInputError(f"{address} names no collection; write it as {parts.scheme}://BUCKET/NAME")
        if "@" in parts.netloc or parts.query:
            raise InvalidInputError("credentials do not belong into an address; put them into the environment")
        self.address = address
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        # Not encrypted only where that was asked for by the very address of the storage.
        allowed = {"allow_http": True} if endpoint.startswith("http://") else {}
        try:
            self._store, self._transfers = (_client(address, times, allowed) for times in (_QUICK, _TRANSFER))
        except _obstore("exceptions").BaseError as problem:
            raise InvalidInputError(
                f"{address} cannot be used ({_first_line(problem)}); put the account and the credentials into the "
                "environment, by the names that the storage's own tools use"
            ) from None

    def list(self, prefix: str) -> dict[str, ObjectFacts]:
        """Return the objects whose names begin with a prefix that ends in a slash."""
        with self._errors():
            return {
                one["path"]: ObjectFacts(one["size"], _tag(one), one["last_modified"])
                for chunk in _obstore().list(self._store, prefix.rstrip("/"))
                for one in chunk
            }

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Return the content and the tag of an object, None where there is none."""
        try:
            with self._errors():
                found = _obstore().get(self._store, name)
                return bytes(found.bytes()), _tag(found.meta)
        except FileNotFoundError:
            return None

    def facts(self, name: str) -> ObjectFacts | None:
        """Return what is known of an object without reading it, None where there is none."""
        try:
            with self._errors():
                one = _obstore().head(self._store, name)
        except FileNotFoundError:
            return None
        return ObjectFacts(one["size"], _tag(one), one["last_modified"])

    def pieces(self, name: str, size: int) -> Iterator[bytes]:
        """Yield the content of an object of a size piece by piece; one that is gone raises ``FileNotFoundError``."""
        for start in range(0, size, _PIECE):
            with self._errors():
                length = min(_PIECE, size - start)
                piece = bytes(_obstore().get_range(self._transfers, name, start=start, length=length))
            yield piece

    def download(self, files: dict[str, tuple[int, Path]]) -> None:
        """Copy objects, named with their sizes, into files, which are whole or absent."""

        def one(entry: tuple[str, tuple[int, Path]]) -> None:
            name, (size, path) = entry
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as draft, draft.open("wb") as stream:
                for piece in self.pieces(name, size):
                    stream.write(piece)

        _in_parallel(one, files.items())

    def upload(self, files: dict[str, Path]) -> None:
        """Copy files into objects, whatever was there."""

        def one(entry: tuple[str, Path]) -> None:
            name, path = entry
            with self._errors():
                _obstore().put(self._transfers, name, path)

        _in_parallel(one, files.items())

    def put(self, name: str, content: bytes) -> str:
        """Write an object, whatever was there, and return its tag."""
        with self._errors():
            return _tag(_obstore().put(self._store, name, content))

    def create(self, name: str, content: bytes) -> str:
        """Write an object that must not be there yet, and return its tag."""
        return self._put_if(name, content, "create")

    def replace(self, name: str, content: bytes, tag: str) -> str:
        """Write an object that must still have a tag, and return its new one."""
        return self._put_if(name, content, {"e_tag": tag})

    def _put_if(self, name: str, content: bytes, mode: Any) -> str:
        errors = _obstore("exceptions")
        try:
            with self._errors():
                if mode != "create" and self.address.startswith("gs:"):
                    mode = self._numbered(name, mode["e_tag"])
                return _tag(_obstore().put(self._store, name, content, mode=mode, use_multipart=False))
        except (errors.AlreadyExistsError, errors.PreconditionError, FileNotFoundError):
            # An answer may be lost, and what is tried again is then met by itself.
            there = self.get(name)
            if there is not None and there[0] == content:
                return there[1]
            raise StorageConflictError(f"{self.address}/{name} was written by somebody else") from None

    def _numbered(self, name: str, tag: str) -> dict[str, str]:
        """Return what an object must still be where that is told by the number of its version, as Google's is."""
        there = _obstore().head(self._store, name)
        if _tag(there) != tag:
            raise FileNotFoundError(f"{name} with the tag {tag}")
        return {"e_tag": tag, "version": there["version"]}

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; those that are not there are no mistake."""
        all_names = list(names)
        for start in range(0, len(all_names), _DELETED_AT_ONCE):
            with self._errors():
                try:
                    _obstore().delete(self._store, all_names[start : start + _DELETED_AT_ONCE])
                except FileNotFoundError:
                    continue

    def signed(self, name: str, seconds: float) -> str:
        """Return an address under which anybody can read an object for some time."""
        with self._errors():
            return str(_obstore().sign(self._store, "GET", name, timedelta(seconds=seconds)))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        errors = _obstore("exceptions")
        try:
            yield
        except (errors.AlreadyExistsError, errors.PreconditionError, FileNotFoundError):
            raise
        except (errors.PermissionDeniedError, errors.UnauthenticatedError) as problem:
            raise StorageError(
                f"{self.address} may not be used with the credentials in the environment ({_first_line(problem)})"
            ) from None
        except (errors.BaseError, OSError) as problem:
            raise StorageError(
                f"{self.address} cannot be reached now ({_first_line(problem)}); look at the network, at the bucket, "
                "and at the endpoint and the credentials in the environment"
            ) from None


def _client(address: str, times: tuple[int, int], allowed: dict[str, Any]) -> Any:
    options = {"timeout": f"{times[0]}s", "connect_timeout": f"{_CONNECT_SECONDS}s", **allowed}
    retries = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=times[1])}
    return _obstore("store").from_url(address, client_options=options, retry_config=retries)


def _tag(found: Any) -> str:
    """Return the tag of an object; Azure has it in quotation marks in some answers and without them in others."""
    tag = str(found["e_tag"] or "")
    return f'"{tag}"' if tag and not tag.endswith('"') else tag


def _in_parallel(work: Any, entries: Iterable[Any]) -> None:
    entries = list(entries)
    if len(entries) == 1:
        work(entries[0])
    elif entries:
        with ThreadPoolExecutor(min(_TRANSFERS_AT_ONCE, len(entries))) as pool:
            for _ in pool.map(work, entries):
                pass


def _first_line(problem: BaseException) -> str:
    return str(problem).partition("\n")[0].strip()[:300]


def _obstore(part: str = "") -> Any:
    try:
        return import_module(f"obstore.{part}" if part else "obstore")
    except ImportError:
        raise MissingPackageError("object storage", "'diptych[storage]'") from None


LEASE_SECONDS = 8.0
_RENEWED_EVERY = LEASE_SECONDS / 4
_LOOK_SECONDS = 0.25
# A lease that was not renewed for so long has ended whatever the clocks of two machines say.
_SURELY_ENDED = 20 * LEASE_SECONDS
_OBJECT = "writer.json"


@dataclass(frozen=True)
class _Held:
    """What the object says: who writes, since which change of writer, and whether a former one is yet to be cut off."""

    holder: str | None
    term: int
    cuts_off: bool
    tag: str = ""
    age_seconds: float = 0.0

    def document(self) -> bytes:
        # Never twice the same bytes, which would have the same tag.
        said = {"holder": self.holder, "term": self.term, "cuts_off": self.cuts_off}
        return json.dumps({**said, "nonce": uuid.uuid4().hex}).encode()


class WriterLease:
    """An object that names the writer; whoever holds it renews it, and it ends by itself.

    The lease keeps writers from disturbing each other. That a writer which was paused for longer than its lease cannot
    commit when it wakes up is not left to clocks: a writer that takes over from one that did not give its lease back
    writes the next version of every table first, and each version can be written once.
    """

    def __init__(self, bucket: Bucket, holder: str) -> None:
        self._bucket = bucket
        self._holder = holder
        self._lock = threading.Lock()
        self._held = _Held(None, 0, False)
        self._is_lost = False

    @contextmanager
    def held(self, wait: float) -> Iterator[bool]:
        """Be the writer, or raise after ``wait`` seconds; yields whether another one is to be cut off first."""
        self._held, self._is_lost = self._acquired(wait), False
        stopping = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(stopping,), name="writer-lease", daemon=True)
        renewing.start()
        is_away = False
        try:
            yield self._held.cuts_off
        except StorageError:
            # The lease ends by itself; asking for that would only take longer.
            is_away = True
            raise
        finally:
            stopping.set()
            renewing.join()
            if not is_away:
                with suppress(StorageError):
                    self._write(holder=None)

    def has_cut_off(self) -> None:
        """Note that no former writer can commit any more."""
        self._write(cuts_off=False)

    def check(self) -> None:
        """Raise if another writer is known to have taken over."""
        if self._is_lost:
            raise lost_lease(self._bucket.address)

    def _acquired(self, wait: float) -> _Held:
        deadline = time.monotonic() + wait
        seen, seen_at, held = "", 0.0, None
        while True:
            with suppress(StorageConflictError):
                held = self._look()
                if held is None:
                    first = _Held(self._holder, 1, False)
                    return replace(first, tag=self._bucket.create(_OBJECT, first.document()))
                if held.tag != seen:
                    seen, seen_at = held.tag, time.monotonic()
                # What this machine left behind is over: its own lock is held here.
                is_free = held.holder in (None, self._holder)
                has_ended = time.monotonic() - seen_at >= LEASE_SECONDS or held.age_seconds >= _SURELY_ENDED
                if is_free or has_ended:
                    mine = _Held(self._holder, held.term + 1, held.cuts_off or not is_free)
                    return replace(mine, tag=self._bucket.replace(_OBJECT, mine.document(), held.tag))
            if time.monotonic() >= deadline:
                raise CollectionBusyError(
                    f"{self._bucket.address} is being written by {held.holder if held else 'another machine'}; try "
                    f"again when it has finished, or in {LEASE_SECONDS:.0f} seconds if it has gone"
                )
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> _Held | None:
        found, facts = self._bucket.get(_OBJECT), self._bucket.facts(_OBJECT)
        if found is None or facts is None:
            return None
        said = json.loads(found[0])
        age = (datetime.now(UTC) - facts.modified).total_seconds()
        return _Held(said["holder"], said["term"], said["cuts_off"], found[1], age)

    def _renew(self, stopping: threading.Event) -> None:
        while not stopping.wait(_RENEWED_EVERY) and not self._is_lost:
            # Where the storage does not answer, the next commit will say so.
            with suppress(StorageError):
                self._write()

    def _write(self, **changes: Any) -> None:
        with self._lock:
            if self._is_lost:
                return
            wanted = replace(self._held, **changes)
            try:
                tag = self._bucket.replace(_OBJECT, wanted.document(), self._held.tag)
            except StorageConflictError:
                # Perhaps it was written by this writer, which did not get the answer.
                there = self._look()
                self._is_lost = there is None or (there.holder, there.term) != (self._holder, self._held.term)
                if self._is_lost or there is None:
                    raise
                tag = self._bucket.replace(_OBJECT, wanted.document(), there.tag)
            self._held = replace(wanted, tag=tag)


def lost_lease(address: str) -> CollectionBusyError:
    """Return the error of a writer that came too late."""
    return CollectionBusyError(
        f"another writer has taken over {address}, because this one did not answer for {LEASE_SECONDS:.0f} seconds or "
        "more; what was not acknowledged is not stored: do it again"
    )
