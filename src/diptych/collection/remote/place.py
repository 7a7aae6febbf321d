"""A collection in object storage as this machine sees it: a copy that follows, and the right to change it."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, cast

from diptych.collection.remote.bucket import Bucket, WriterLease
from diptych.collection.remote.mirror import Mirror
from diptych.collection.storage.layout import stored_root
from diptych.collection.storage.place import LocalPlace, Place, write_lock
from diptych.data.folders import cache_folder, storage_address
from diptych.errors import CollectionBusyError, CollectionError, StorageError

# Changes by others are seen after at most this long, and the time that copying them takes.
FOLLOW_SECONDS = 1.0
_STALE_AFTER = 5.0
_LOCK_SECONDS = 30.0
_log = logging.getLogger("diptych.collection")


class RemotePlace:
    """A collection under an address such as ``s3://bucket/photos``.

    Searches never wait for the storage: they use a copy in the user's cache folder, shared by all processes of the
    machine, that a thread brings up to date every second. While the storage is away they answer from the copy, and
    :attr:`storage_away_seconds` says for how long.
    """

    def __init__(self, address: str) -> None:
        self.name = address
        self._bucket = Bucket(address)
        self._base = base = home_of(address)
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._mirror = Mirror(self._bucket, base)
        self._lease = WriterLease(self._bucket, f"{socket.gethostname()} ({_machine_id(base)})")
        self._is_writing = False
        # A search may fetch a table while another thread sends what it has committed.
        self._sending = threading.RLock()
        self._looked = time.monotonic()
        self._stopping = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="follow", daemon=True)

    def open(self) -> RemotePlace:
        """Fetch what has changed, and go on doing so; without the storage, use what was fetched before."""
        try:
            with self._locked(0.0 if self._mirror.exists else _LOCK_SECONDS):
                self._mirror.pull(everything=not self._mirror.exists)
        except CollectionBusyError:
            # Another process of this machine writes or fetches, so the copy is as new as it can be.
            if not self._mirror.exists:
                raise
        except StorageError as problem:
            if not self._mirror.exists:
                raise
            self._looked -= _STALE_AFTER
            _log.warning("searching an older copy: %s", problem)
        self._follower.start()
        return self

    def create(self, make: Callable[[Path], None]) -> None:
        """Let ``make`` write an empty collection into a folder, and put it into the storage."""
        with write_lock(self._base / "write.lock"), self._locked(_LOCK_SECONDS), self._lease.held(0.0):
            if self.exists():
                raise CollectionError(f"{self.name} is a collection already; open it, or choose another name")
            # Left by a process that was killed while it made one.
            self._bucket.delete(self._bucket.list("store/"))
            folder = self._mirror.new_folder()
            make(folder)
            self._mirror.start(folder)
            for table in sorted(path.stem for path in (folder / "store").glob("*.lance")):
                self._mirror.push_table(table)
            # Last: an address with this object is a whole collection.
            self._mirror.push_layout()
            self._mirror.end_changes()

    def exists(self) -> bool:
        """Say whether there is a collection under the address."""
        return self._bucket.facts("collection.json") is not None

    @property
    def folder(self) -> Path:
        """The present copy."""
        return self._mirror.folder

    @property
    def home(self) -> Path:
        """The folder around the copies, which stays when they change."""
        return self._base

    @property
    def copies(self) -> RemotePlace:
        """This place itself follows its tables."""
        return self

    @property
    def storage_away_seconds(self) -> float | None:
        """For how long the storage could not be looked at, None while it can."""
        seconds = time.monotonic() - self._looked
        return seconds if seconds > _STALE_AFTER and not self._is_writing else None

    @contextmanager
    def writing(self, wait: float) -> Iterator[bool]:
        """Hold the lock of this machine's copy and the lease of the collection."""
        with (
            write_lock(self._base / "write.lock", wait),
            self._locked(_LOCK_SECONDS),
            self._lease.held(wait) as cuts_off,
        ):
            self._mirror.pull(everything=True)
            self._mirror.begin_changes()
            self._is_writing = True
            try:
                yield cuts_off
            finally:
                self._is_writing = False
                self._looked = time.monotonic()
            self._mirror.end_changes()

    def is_awaited(self) -> bool:
        """Say no: whoever comes next fetches what has changed, which takes longer than most changes."""
        return False

    def has_cut_off(self) -> None:
        """Note in the lease that no former writer can commit any more."""
        self._lease.has_cut_off()

    def layout_written(self) -> None:
        """Send the layout and the retrievers that it names."""
        with self._sent():
            self._mirror.push_layout()
            self._mirror.push_head()

    def retrievers_deleted(self, kept: Iterable[str]) -> None:
        """Delete saved retrievers in the storage."""
        with self._sent():
            self._mirror.push_retrievers_deleted(kept)

    def fetch(self, table: str) -> bool:
        """Fetch a table that is not kept on this machine."""
        if self._is_writing:
            with self._sending:
                return self._mirror.fetch_table(table)
        with self._locked(_LOCK_SECONDS):
            return self._mirror.fetch_table(table)

    def tables(self) -> list[str]:
        """Return the names of all tables."""
        return self._mirror.tables()

    def committed(self, table: str) -> None:
        """Send a commit to the storage."""
        with self._sent():
            self._mirror.push_table(table)
            if table == "items":
                self._mirror.push_head()

    def tidied(self, table: str, kept_for: timedelta) -> None:
        """Delete files of old versions in the storage, too."""
        with self._sent():
            self._mirror.push_tidied(table, kept_for)

    def dropped(self, table: str) -> None:
        """Delete a table in the storage."""
        with self._sent():
            self._mirror.push_dropped(table)

    def keep_originals(self, files: Mapping[str, Path]) -> None:
        """Put picture files into the storage, so that every machine can show them."""
        with self._sent():
            self._bucket.upload({_original(content_hash): path for content_hash, path in files.items()})

    def original(self, content_hash: str) -> BinaryIO | None:
        """Fetch a picture file from the storage into a file without a name, None where there is none."""
        facts = self._bucket.facts(_original(content_hash))
        if facts is None:
            return None
        file = tempfile.TemporaryFile()  # noqa: SIM115, the caller closes it
        try:
            for piece in self._bucket.pieces(_original(content_hash), facts.size):
                file.write(piece)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return cast(BinaryIO, file)

    def close(self) -> None:
        """End following."""
        self._stopping.set()
        if self._follower.is_alive():
            self._follower.join()

    @contextmanager
    def _sent(self) -> Iterator[None]:
        self._lease.check()
        with self._sending:
            yield

    @contextmanager
    def _locked(self, wait: float) -> Iterator[None]:
        """Be the only one on this machine who changes the copy."""
        with write_lock(self._base / "copy.lock", wait):
            yield

    def _follow(self) -> None:
        was_told = False
        while not self._stopping.wait(FOLLOW_SECONDS):
            try:
                self._look()
                self._looked, was_told = time.monotonic(), False
            except Exception as problem:
                if not was_told:
                    _log.warning("searches go on with what was copied before: %s", problem)
                was_told = True

    def _look(self) -> None:
        """Fetch what has changed; where another process of this machine does, only ask whether the storage answers."""
        try:
            with self._locked(0.0):
                self._mirror.pull()
        except CollectionBusyError:
            self.exists()


def open_place(location: str | os.PathLike[str]) -> Place:
    """Return where a collection is: a folder, or an address in object storage."""
    address = storage_address(location)
    return LocalPlace(Path(location)) if address is None else RemotePlace(address).open()


def create_place(location: str | os.PathLike[str], root: Path | None, make: Callable[[Path, str], None]) -> None:
    """Let ``make`` write an empty collection into a folder with the root to store, wherever it is to be."""
    address = storage_address(location)
    if address is None:
        folder = Path(location)
        make(folder, stored_root(folder.parent if root is None else root, folder))
    else:
        RemotePlace(address).create(lambda folder: make(folder, os.path.abspath(root or Path.cwd())))


def has_collection(location: str | os.PathLike[str]) -> bool:
    """Say whether there is a collection."""
    address = storage_address(location)
    return (Path(location) / "collection.json").exists() if address is None else RemotePlace(address).exists()


def home_of(location: str | os.PathLike[str]) -> Path:
    """Return the folder of what belongs to a collection on this machine alone, such as the click log."""
    address = storage_address(location)
    if address is None:
        return Path(location)
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", address.partition("://")[2])[-60:]
    return cache_folder() / "remote" / f"{plain}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def _original(content_hash: str) -> str:
    return f"originals/{content_hash}"


def _machine_id(base: Path) -> str:
    """Return what tells this machine's copy from that of every other one."""
    path = base / "machine"
    with suppress(FileExistsError), path.open("x", encoding="utf-8") as stream:
        stream.write(uuid.uuid4().hex[:12])
    return path.read_text(encoding="utf-8") or "unknown"
