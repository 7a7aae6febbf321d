"""A collection in a folder: one SQLite file, read in transactions of each thread, written by one thread alone."""

from __future__ import annotations

import fcntl
import json
import os
import queue
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from diptych.atomic_files import Durability, sync_to_disk
from diptych.collection.store.dialect import Connection, SqliteConnection, has_table
from diptych.collection.store.store import (
    DERIVED,
    LAST_CHANGE,
    WRITE_WAIT_S,
    Fill,
    Job,
    Result,
    Store,
    check_format,
    create_tables,
)
from diptych.errors import CollectionBusyError, CollectionError, NoRoomError

DATABASE = "collection.sqlite"
WRITE_LOCK = "write.lock"
RESERVE = "reserve"
"""A file that is given back when the disk is full, so that items can be removed."""

BUSY_TIMEOUT_MS = 30_000
JOBS_TOGETHER = 64
COMMIT_EVERY_S = 0.05
CHECKPOINT_PAGES = 4096
WRITE_CACHE_KIB = 64 << 10
TRUNCATE_BYTES = 256 << 20
RESERVE_BYTES = 16 << 20
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph"})
MOUNTS = Path("/etc/mtab")
# Tables of points go with their search model.
_MISSING_IN_SCHEMA = re.compile(r"no such (column|table: (?!point_))|has no column named")

_OWN_FILES = (DATABASE, WRITE_LOCK, RESERVE, DERIVED)


@dataclass(eq=False)
class _Waiting:
    job: Job[Any]
    freeing: bool
    alone: bool
    done: Future[Any] = field(default_factory=Future)
    is_started: bool = False

    def start(self) -> bool:
        """Return True if the job is still wanted; from then on it is not taken back."""
        self.is_started = self.is_started or self.done.set_running_or_notify_cancel()
        return self.is_started


class SqliteStore(Store):
    """A collection's folder with one SQLite file; a lock file orders those who write, across processes."""

    engine = "sqlite"
    _has_reserve = True

    def __init__(self, folder: Path, durability: Durability = "power") -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self.derived = folder / DERIVED
        self._durability = durability
        super().__init__()

    def _forget_connections(self) -> None:
        super()._forget_connections()
        self._jobs: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._start = threading.Lock()
        self._writer: threading.Thread | None = None

    @classmethod
    def create(cls, folder: Path, durability: Durability = "power", fill: Fill | None = None) -> SqliteStore:
        """Make the tables of an empty collection in a folder, and fill them, in one step."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise CollectionError(f"{folder} is a file; name a folder for the collection") from None
        reject_network_file_system(folder)
        store = cls(folder, durability)

        def create(db: Connection) -> None:
            if has_table(db, "meta"):
                raise CollectionError(f"{folder} has a collection already: open it, or choose another folder")
            create_tables(db)
            if fill is not None:
                fill(db, folder)

        others = sorted(path.name for path in folder.iterdir() if not path.name.startswith(_OWN_FILES))
        if others and not store.path.exists():
            raise CollectionError(f"{folder} holds other files ({others[0]}); choose an empty or new folder")
        # What people searched for is in it: for its owner alone, unless they change that.
        store.path.touch(mode=0o600)
        store.derived.mkdir(exist_ok=True)
        try:
            store.write(create)
        except CollectionError:
            store.close()
            raise
        if durability == "power":
            sync_to_disk(folder)
            sync_to_disk(folder.parent)
        return store

    @classmethod
    def open(cls, folder: Path, durability: Durability = "power") -> SqliteStore:
        """Open the collection of a folder."""
        store = cls(folder, durability)
        if not store.path.is_file():
            raise CollectionError(
                f"{folder} is not a collection: {DATABASE} is missing; "
                "make one with Collection.create or `diptych index`"
            )
        reject_network_file_system(folder)
        with store.reading() as db:
            check_format(db, folder)
        return store

    def _begin_reading(self, replica: bool) -> SqliteConnection:
        db = self._idle_connection()
        db.raw.execute("BEGIN")
        return db

    def _idle_connection(self) -> SqliteConnection:
        with suppress(IndexError):
            return cast(SqliteConnection, self._idle.pop())
        # Read-only: checkpoints are made by writers alone, under their lock.
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        raw = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        raw.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        raw.execute("PRAGMA trusted_schema=0")
        return SqliteConnection(raw)

    def _last_change(self, db: SqliteConnection) -> int:
        # Grows with each commit of another connection: 5 µs where nothing was written.
        version = db.value("PRAGMA data_version")
        if db.last_change is None or db.last_change[0] != version:
            db.last_change = version, int(db.value(LAST_CHANGE) or 0)
        return db.last_change[1]

    def _write(self, job: Job[Result], wait: float, freeing: bool) -> Result:
        waiting = _Waiting(job, freeing, alone=freeing)
        with self._start:
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write_all, name="diptych-writer", daemon=True)
                self._writer.start()
            self._jobs.put(waiting)
        done = waiting.done
        try:
            done.exception(wait)
        except TimeoutError:
            if done.cancel():
                raise CollectionBusyError(busy_sentence(self.folder / WRITE_LOCK, wait)) from None
        except BaseException:
            # Interrupted: a job that has started is short, and its end is known afterwards.
            if not done.cancel():
                done.exception()
            raise
        return cast(Result, done.result())

    def size(self) -> int:
        """Return how many bytes the database and its log take."""
        return sum(path.stat().st_size for path in self.folder.glob(f"{DATABASE}*"))

    def erase(self, job: Job[Result]) -> Result:
        """Run a job that deletes something for good, also from the write-ahead log."""
        result = self.write(job)
        with write_lock(self.folder / WRITE_LOCK), closing(sqlite3.connect(self.path)) as raw:
            raw.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return result

    def close(self) -> None:
        """Wait for the writer, and close the connections."""
        self._check_process()
        with self._start:
            writer, self._writer = self._writer, None
            if writer is not None and writer.is_alive():
                self._jobs.put(None)
                writer.join(WRITE_WAIT_S)
        super().close()

    def _write_all(self) -> None:
        raw: sqlite3.Connection | None = None
        while (first := self._jobs.get()) is not None:
            try:
                with write_lock(self.folder / WRITE_LOCK):
                    if first.start():
                        raw = raw or self._writing_connection()
                        self._commit_together(raw, first)
                        self._shorten_log(raw, TRUNCATE_BYTES)
                        if not self._has_reserve:
                            # The disk was full, and there may be room again.
                            self._make_reserve()
            except BaseException as problem:
                if not first.done.done():
                    first.done.set_exception(self._clear(problem))
        if raw is not None:
            with suppress(sqlite3.Error, OSError), write_lock(self.folder / WRITE_LOCK):
                self._shorten_log(raw, 0)
                raw.close()

    def _writing_connection(self) -> sqlite3.Connection:
        raw = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
        for setting in (
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            "journal_mode=WAL",
            f"synchronous={'FULL' if self._durability == 'power' else 'NORMAL'}",
            "fullfsync=1",
            "checkpoint_fullfsync=1",
            "foreign_keys=1",
            f"cache_size=-{WRITE_CACHE_KIB}",
            f"wal_autocheckpoint={CHECKPOINT_PAGES}",
            f"journal_size_limit={TRUNCATE_BYTES}",
            # What people typed can be deleted for good; pages that are split keep no copy of it either.
            "secure_delete=1",
        ):
            raw.execute(f"PRAGMA {setting}")
        self._make_reserve()
        return raw

    def _commit_together(self, raw: sqlite3.Connection, first: _Waiting) -> None:
        """Run the jobs that wait, each in a savepoint of its own, and answer them after one commit."""
        db = SqliteConnection(raw, writes=True)
        until = time.monotonic() + COMMIT_EVERY_S
        ran: list[tuple[_Waiting, Any]] = []
        waiting: _Waiting | None = first
        try:
            raw.execute("BEGIN IMMEDIATE")
            while waiting is not None:
                raw.execute("SAVEPOINT job")
                try:
                    with self._as_job(db):
                        result = waiting.job(db)
                except BaseException as problem:
                    clear = self._clear(problem)
                    if isinstance(clear, NoRoomError) or not raw.in_transaction:
                        raise
                    raw.execute("ROLLBACK TO job")
                    waiting.done.set_exception(clear)
                else:
                    ran.append((waiting, result))
                raw.execute("RELEASE job")
                is_last = waiting.alone or len(ran) >= JOBS_TOGETHER or time.monotonic() > until
                waiting = None if is_last else self._next_job()
            raw.execute("COMMIT")
        except BaseException as problem:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            undone = [each for each, _ in ran]
            if waiting is not None and waiting not in undone:
                undone.append(waiting)
            self._undo_together(raw, undone, problem)
            return
        for each, result in ran:
            each.done.set_result(result)

    def _next_job(self) -> _Waiting | None:
        with suppress(queue.Empty):
            while True:
                waiting = self._jobs.get_nowait()
                if waiting is None or waiting.alone:
                    # This is committed first.
                    self._jobs.put(waiting)
                    return None
                if waiting.start():
                    return waiting
        return None

    def _undo_together(self, raw: sqlite3.Connection, undone: list[_Waiting], problem: BaseException) -> None:
        """Answer a job that ended its transaction, a full disk does so; jobs that shared it are run again alone."""
        if len(undone) > 1:
            for waiting in undone:
                waiting.alone = True
                self._jobs.put(waiting)
            return
        clear = self._clear(problem)
        for waiting in undone:
            reserve = self.folder / RESERVE
            if waiting.freeing and isinstance(clear, NoRoomError) and reserve.exists():
                reserve.unlink()
                waiting.freeing = False
                self._commit_together(raw, waiting)
                self._shorten_log(raw, 0)
                self._make_reserve()
            else:
                waiting.done.set_exception(clear)

    def _make_reserve(self) -> None:
        self._has_reserve = not hasattr(os, "posix_fallocate")
        if not self._has_reserve:
            with suppress(OSError), (self.folder / RESERVE).open("ab") as stream:
                size = min(max(self.path.stat().st_size, RESERVE_BYTES // 8), RESERVE_BYTES)
                os.posix_fallocate(stream.fileno(), 0, size)
                self._has_reserve = True

    def _shorten_log(self, raw: sqlite3.Connection, limit: int) -> None:
        """Bring the log into the database and empty it, if it is over a limit and nothing reads from it."""
        with suppress(OSError, sqlite3.Error):
            if self.path.with_name(f"{DATABASE}-wal").stat().st_size > limit:
                raw.execute("PRAGMA busy_timeout=0")
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                raw.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")

    def _explained(self, problem: BaseException) -> CollectionError | None:
        if isinstance(problem, UnicodeDecodeError) or "Could not decode to UTF-8" in str(problem):
            return CollectionError(_damaged(self.folder, problem))
        if not isinstance(problem, sqlite3.Error):
            return None
        # Extended names begin with that of the kind: SQLITE_IOERR_FSYNC.
        kind = "_".join(getattr(problem, "sqlite_errorname", "").split("_")[:2])
        if kind == "SQLITE_FULL":
            return NoRoomError(self.folder, 1 << 20)
        if kind in ("SQLITE_BUSY", "SQLITE_LOCKED"):
            return CollectionBusyError(busy_sentence(self.folder / WRITE_LOCK, BUSY_TIMEOUT_MS / 1000))
        if kind in ("SQLITE_CORRUPT", "SQLITE_NOTADB") or _MISSING_IN_SCHEMA.search(str(problem)):
            return CollectionError(_damaged(self.folder, problem))
        if kind in ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"):
            return CollectionError(f"{self.path} cannot be opened ({problem}); look at the rights of file and folder")
        if kind == "SQLITE_IOERR":
            return CollectionError(f"{self.path} cannot be read or written ({problem}); check the disk, then verify")
        return None


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Be the only writer of a collection, when those who came before are done."""
    with path.open("a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        # Owner information is best effort. Writing it at each commit, or truncating it, would cost another sync.
        with suppress(OSError):
            owner = json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode()
            stream.seek(0)
            if stream.read() != owner:
                stream.truncate(0)
                stream.write(owner)
                stream.flush()
        _HELD.add(stream.fileno())
        try:
            yield
        finally:
            _HELD.discard(stream.fileno())
            fcntl.flock(stream, fcntl.LOCK_UN)


def _close_held() -> None:
    # A forked process shares the locks of its parent: they would outlive it.
    for number in _HELD:
        with suppress(OSError):
            os.close(number)
    _HELD.clear()


_HELD: set[int] = set()
os.register_at_fork(after_in_child=_close_held)


def busy_sentence(path: Path, waited: float) -> str:
    """Return the sentence about a write lock that was waited for, naming the process that holds it."""
    owner = "another process"
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_text())
        owner = f"process {found['process']} on {found['host']}"
    return f"{owner} has been writing to {path.parent} for {waited:.0f} s; try again when it is done"


def reject_network_file_system(folder: Path) -> None:
    """Raise where SQLite cannot share its log among processes."""
    place, kind, depth = folder.resolve(), "", -1
    with suppress(OSError):
        for line in MOUNTS.read_text().splitlines():
            _, mounted, mounted_kind, *_ = line.split()
            # Blanks are written as octal numbers.
            point = Path(mounted.encode().decode("unicode_escape"))
            if place.is_relative_to(point) and len(point.parts) >= depth:
                kind, depth = mounted_kind, len(point.parts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise CollectionError(
            f"{folder} is on a network file system ({kind}), where SQLite may lose data: "
            "choose a local folder, or PostgreSQL by its address (postgresql://host/database?schema=name)"
        )


def _damaged(folder: Path, problem: BaseException) -> str:
    return f"{folder} is damaged ({problem}): `diptych verify` says what, `diptych repair` mends it"
