"""The database of a collection: read in transactions of each thread, written by one job after the other."""

from __future__ import annotations

import fcntl
import json
import os
import queue
import socket
import sqlite3
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from diptych.atomic_files import Durability, sync_to_disk
from diptych.collection.store.dialect import Connection, SqliteConnection, has_table, schema_statements
from diptych.errors import CollectionBusyError, CollectionError, InvalidInputError, NoRoomError

DATABASE = "collection.sqlite"
WRITE_LOCK = "write.lock"
RESERVE = "reserve"
"""A file that is given back when the disk is full, so that items can be removed."""
DERIVED = "derived"
"""The folder of what can be made again: vector files, columns, unpacked models."""

FORMAT = 5
WRITE_WAIT_S = 30.0
BUSY_TIMEOUT_MS = 30_000
JOBS_TOGETHER = 64
COMMIT_EVERY_S = 0.05
CHECKPOINT_PAGES = 4096
TRUNCATE_BYTES = 256 << 20
RESERVE_BYTES = 16 << 20
MAX_IDLE_CONNECTIONS = 16
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph"})

_OWN_FILES = (DATABASE, WRITE_LOCK, RESERVE, DERIVED)
MOUNTS = Path("/etc/mtab")

Result = TypeVar("Result")
Job = Callable[[Connection], Result]
Fill = Callable[[Connection, Path], None]
"""Fills empty tables; it is told the folder of the store."""


class Store(ABC):
    """What every engine offers: transactions to read, jobs to write, and a number that grows with each change.

    ``derived`` is a folder for files that can be made again from the tables. Nothing here knows what the tables mean.
    """

    folder: Path
    derived: Path
    engine: str
    write_wait: float = WRITE_WAIT_S

    def __init__(self) -> None:
        self._make_views: Callable[[Connection], None] | None = None
        self._forget_connections()

    def show_past(self, make_views: Callable[[Connection], None]) -> None:
        """Make views of the past at the beginning of each block that reads, and refuse to write.

        The views are gone at the end of the block.
        """
        self._make_views = make_views

    def check_present(self) -> None:
        """Raise where the past is shown, which cannot be changed."""
        if self._make_views is not None:
            raise InvalidInputError("the past cannot be changed: open the collection without as_of")

    def _forget_connections(self) -> None:
        """Start without connections and threads: in a new store, and in a process that was forked from another."""
        self._process = os.getpid()
        self._local = threading.local()
        self._idle: list[Any] = []

    def _check_process(self) -> None:
        if self._process != os.getpid():
            # Neither engine allows a connection in two processes: those of the parent are kept, unused, never closed.
            self._of_parent = self._idle
            self._forget_connections()

    @contextmanager
    def reading(self, *, replica: bool = False) -> Iterator[Connection]:
        """Read in one transaction: everything in the block is of one moment.

        With ``replica`` a second server may answer, which allows no temporary views. Blocks of one thread may be
        nested, and share the transaction of the outermost one. In a job the block reads what the job has written.
        """
        self._check_process()
        outer = getattr(self._local, "db", None)
        if outer is not None:
            yield outer
            return
        try:
            db = self._begin_reading()
            self._local.db = db
            try:
                if self._make_views is not None:
                    self._make_views(db)
                yield db
            finally:
                self._local.db = None
                self._end_reading(db)
        except Exception as problem:
            clear = self.clear_error(problem)
            if clear is problem:
                raise
            raise clear from problem

    def write(self, job: Job[Result], *, wait: float | None = None, freeing: bool = False) -> Result:
        """Run a job in a transaction, alone, and return its result when it is durable; what it raises undoes it.

        A job is short: files are read and encoded before, and at most a few thousand rows are written. It may be run
        again where its transaction was undone for the fault of another, so that it changes nothing but the tables.

        Parameters
        ----------
        wait : float or None
            For how many seconds others that write are waited for, by default ``write_wait``.
        freeing : bool
            True if the job makes room: on a full disk it gets what was kept for this.
        """
        self._check_process()
        if getattr(self._local, "in_job", False):
            raise RuntimeError("a job cannot call Store.write: pass its connection on to what writes")
        self.check_present()
        if wait is None:
            wait = getattr(self._local, "wait", self.write_wait)
        return self._write(job, wait, freeing)

    @contextmanager
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Let jobs of this thread wait so long for others that write, instead of ``write_wait``."""
        self._check_process()
        self._local.wait = seconds
        try:
            yield
        finally:
            del self._local.wait

    @contextmanager
    def _as_job(self, db: Connection) -> Iterator[None]:
        """Make reading blocks of this thread read through the connection of a job."""
        outer = getattr(self._local, "db", None)
        self._local.db, self._local.in_job = db, True
        try:
            yield
        finally:
            self._local.db, self._local.in_job = outer, False

    def erase(self, job: Job[Result]) -> Result:
        """Run a job that deletes something for good: it is in no file of the database any more."""
        return self.write(job)

    def last_change(self) -> int:
        """Return the number of the latest change, by whichever process; it only grows."""
        with self.reading() as db:
            return int(db.value("SELECT max(id) FROM change") or 0)

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the tables take."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; what was written is durable already."""

    def clear_error(self, problem: BaseException) -> BaseException:
        """Return an error of the engine as one sentence that names the fix; others, and faults of SQL, as they are."""
        clear = self._explained(problem)
        if clear is None:
            return problem
        clear.__cause__ = problem
        return clear

    @abstractmethod
    def _explained(self, problem: BaseException) -> CollectionError | None: ...

    @abstractmethod
    def _begin_reading(self) -> Connection: ...

    @abstractmethod
    def _end_reading(self, db: Any) -> None: ...

    @abstractmethod
    def _write(self, job: Job[Result], wait: float, freeing: bool) -> Result: ...


def create_tables(db: Connection) -> None:
    """Make the tables of an empty collection, with a name of its own."""
    for statement in schema_statements(db.words).split(";\n"):
        if statement.strip():
            db.run(statement)
    rows = [("format", str(FORMAT)), ("uuid", uuid.uuid4().hex)]
    db.many("INSERT INTO meta (name, value) VALUES (?, ?)", rows)


def check_format(db: Connection, place: object) -> None:
    """Raise if the tables are of another version."""
    if not has_table(db, "meta"):
        raise CollectionError(f"{place} is not a collection: making it was interrupted; use Collection.create again")
    found = db.value("SELECT value FROM meta WHERE name = 'format'")
    if found != str(FORMAT):
        raise CollectionError(f"{place} has format {found}, this Diptych reads {FORMAT}: use the version that made it")


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

    def _begin_reading(self) -> SqliteConnection:
        db = self._idle_connection()
        db.raw.execute("BEGIN")
        return db

    def _end_reading(self, db: SqliteConnection) -> None:
        with suppress(sqlite3.Error):
            db.raw.execute("ROLLBACK")
        self._keep(db)

    def _idle_connection(self) -> SqliteConnection:
        with suppress(IndexError):
            return cast(SqliteConnection, self._idle.pop())
        # Read-only: checkpoints are made by writers alone, under their lock.
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        raw = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        raw.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        raw.execute("PRAGMA trusted_schema=0")
        return SqliteConnection(raw)

    def _keep(self, db: SqliteConnection) -> None:
        if len(self._idle) < MAX_IDLE_CONNECTIONS:
            self._idle.append(db)
        else:
            db.raw.close()

    def last_change(self) -> int:
        """Return the number of the latest change, by whichever process; it only grows."""
        self._check_process()
        if getattr(self._local, "db", None) is not None:
            return super().last_change()
        try:
            db = self._idle_connection()
            # Grows with each commit of another connection: 5 µs where nothing was written.
            version = db.raw.execute("PRAGMA data_version").fetchone()[0]
            if db.last_change is None or db.last_change[0] != version:
                db.last_change = version, int(db.value("SELECT max(id) FROM change") or 0)
            self._keep(db)
        except sqlite3.Error as problem:
            raise self.clear_error(problem) from problem
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
        while self._idle:
            self._idle.pop().raw.close()

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
                    first.done.set_exception(self.clear_error(problem))
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
                    clear = self.clear_error(problem)
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
        clear = self.clear_error(problem)
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
        if kind in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
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
