"""The database of a collection: read in transactions of each thread, written by one thread for all."""

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
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from diptych.atomic_files import Durability
from diptych.collection.store.dialect import Connection, SqliteConnection, schema_statements
from diptych.errors import CollectionBusyError, CollectionError, NoRoomError

DATABASE = "collection.sqlite"
WRITE_LOCK = "write.lock"
DERIVED = "derived"
"""The folder of what can be made again: vector files, columns, unpacked models."""

FORMAT = 5
WRITE_WAIT_S = 30.0
JOBS_TOGETHER = 64
COMMIT_EVERY_S = 0.05
CHECKPOINT_BYTES = 16 << 20
TRUNCATE_BYTES = 256 << 20
_CHECKPOINT_LOOKS = 16

Result = TypeVar("Result")
Job = Callable[[Connection], Result]


class Store:
    """What every engine offers: transactions to read, jobs to write, and a number that grows with each change.

    ``derived`` is a folder for files that can be made again from the tables. Nothing here knows what the tables mean.
    """

    derived: Path
    engine: str

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read in one transaction: everything in the block is of one moment. Blocks of one thread may be nested."""
        raise NotImplementedError
        yield

    def write(self, job: Job[Result], *, wait: float | None = None) -> Result:
        """Run a job in a transaction, alone, and return its result when it is durable; what it raises undoes it.

        A job is short: files are read and encoded before, and at most a few thousand rows are written. Another process
        that writes is waited for ``wait`` seconds, by default 30.
        """
        raise NotImplementedError

    def erase(self, job: Job[Result]) -> Result:
        """Run a job that deletes something for good: it is in no file of the database any more."""
        return self.write(job)

    def last_change(self) -> int:
        """Return the number of the latest change, by whichever process; it only grows."""
        with self.reading() as db:
            return int(db.value("SELECT max(id) FROM change") or 0)

    def close(self) -> None:
        """Let go of the database; everything written is there already."""
        raise NotImplementedError


@dataclass
class _Waiting:
    job: Job[Any]
    wait: float
    done: Future[Any]


class SqliteStore(Store):
    """A collection's folder with one SQLite file; the lock file orders those who write, across processes."""

    engine = "sqlite"

    def __init__(self, folder: Path, durability: Durability = "power") -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self.derived = folder / DERIVED
        self._durability = durability
        self._local = threading.local()
        self._jobs: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._start = threading.Lock()
        self._writer: threading.Thread | None = None
        self._readers: list[sqlite3.Connection] = []

    @classmethod
    def create(cls, folder: Path, durability: Durability = "power") -> SqliteStore:
        """Make the tables of an empty collection in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        store = cls(folder, durability)
        store.derived.mkdir(exist_ok=True)

        def make(db: Connection) -> None:
            for statement in schema_statements(db.words).split(";\n"):
                if statement.strip():
                    db.run(statement)
            rows = [("format", str(FORMAT)), ("uuid", uuid.uuid4().hex)]
            db.many("INSERT INTO meta (name, value) VALUES (?, ?)", rows)

        store.write(make)
        return store

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read in one transaction of this thread."""
        local = self._local
        if getattr(local, "depth", 0):
            local.depth += 1
            try:
                yield local.db
            finally:
                local.depth -= 1
            return
        db = self._reader()
        db.raw.execute("BEGIN")
        local.depth = 1
        try:
            yield db
        except sqlite3.DatabaseError as problem:
            raise clear_error(self.folder, problem) from problem
        finally:
            local.depth = 0
            with suppress(sqlite3.Error):
                db.raw.execute("ROLLBACK")

    def _reader(self) -> SqliteConnection:
        # A connection of another process of ours, before a fork, must not be used.
        if getattr(self._local, "process", None) != os.getpid():
            try:
                raw = sqlite3.connect(
                    f"{self.path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
                )
                raw.execute("PRAGMA busy_timeout=30000")
                raw.execute("PRAGMA trusted_schema=0")
            except sqlite3.Error as problem:
                raise clear_error(self.folder, problem) from problem
            self._readers.append(raw)
            self._local.db, self._local.process, self._local.depth = SqliteConnection(raw), os.getpid(), 0
        return cast(SqliteConnection, self._local.db)

    def write(self, job: Job[Result], *, wait: float | None = None) -> Result:
        """Run a job in a transaction and return its result when it is durable."""
        waiting = _Waiting(job, WRITE_WAIT_S if wait is None else wait, Future())
        with self._start:
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write_all, name="diptych-writer", daemon=True)
                self._writer.start()
            self._jobs.put(waiting)
        return cast(Result, waiting.done.result())

    def erase(self, job: Job[Result]) -> Result:
        """Run a job that deletes something for good, also from the write-ahead log."""
        result = self.write(job)
        with write_lock(self.folder / WRITE_LOCK, WRITE_WAIT_S), closing(sqlite3.connect(self.path)) as raw:
            raw.execute("PRAGMA busy_timeout=30000")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return result

    def close(self) -> None:
        """Wait for the writer, and close the connections."""
        with self._start:
            writer, self._writer = self._writer, None
            if writer is not None and writer.is_alive():
                self._jobs.put(None)
                writer.join()
        for raw in self._readers:
            with suppress(sqlite3.Error):
                raw.close()
        self._readers.clear()
        self._local = threading.local()

    def _write_all(self) -> None:
        raw: sqlite3.Connection | None = None
        looks = 0
        while (first := self._jobs.get()) is not None:
            try:
                with write_lock(self.folder / WRITE_LOCK, first.wait):
                    raw = raw or self._writing_connection()
                    self._commit_together(raw, first)
                    looks += 1
                    if looks % _CHECKPOINT_LOOKS == 0:
                        self._checkpoint(raw)
            except BaseException as problem:
                first.done.set_exception(clear_error(self.folder, problem))
        if raw is not None:
            with suppress(CollectionError, sqlite3.Error, OSError), write_lock(self.folder / WRITE_LOCK, WRITE_WAIT_S):
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                raw.close()

    def _writing_connection(self) -> sqlite3.Connection:
        raw = sqlite3.connect(self.path, isolation_level=None)
        for setting in (
            "busy_timeout=30000",
            "journal_mode=WAL",
            f"synchronous={'FULL' if self._durability == 'power' else 'NORMAL'}",
            "fullfsync=1",
            "checkpoint_fullfsync=1",
            "foreign_keys=1",
            "wal_autocheckpoint=0",
            "journal_size_limit=67108864",
            # What people typed can be deleted for good; pages that are split keep no copy of it either.
            "secure_delete=1",
        ):
            raw.execute(f"PRAGMA {setting}")
        return raw

    def _commit_together(self, raw: sqlite3.Connection, first: _Waiting) -> None:
        """Run the jobs that wait, each in a savepoint of its own, and answer them after one commit."""
        raw.execute("BEGIN IMMEDIATE")
        ended, until = [], time.monotonic() + COMMIT_EVERY_S
        waiting: _Waiting | None = first
        while waiting is not None:
            raw.execute("SAVEPOINT job")
            try:
                result = waiting.job(SqliteConnection(raw, writes=True))
                raw.execute("RELEASE job")
                ended.append((waiting, result))
            except BaseException as problem:
                if not raw.in_transaction:
                    # A full disk has ended the transaction, and with it the jobs before.
                    for other, _ in ended:
                        other.done.set_exception(clear_error(self.folder, problem))
                    waiting.done.set_exception(clear_error(self.folder, problem))
                    return
                raw.execute("ROLLBACK TO job")
                raw.execute("RELEASE job")
                waiting.done.set_exception(clear_error(self.folder, problem))
            waiting = None
            if len(ended) < JOBS_TOGETHER and time.monotonic() < until:
                with suppress(queue.Empty):
                    waiting = self._jobs.get_nowait()
                    if waiting is None:
                        # The end waits until this is committed.
                        self._jobs.put(None)
        try:
            raw.execute("COMMIT")
        except sqlite3.Error as problem:
            with suppress(sqlite3.Error):
                raw.execute("ROLLBACK")
            for other, _ in ended:
                other.done.set_exception(clear_error(self.folder, problem))
            return
        for other, result in ended:
            other.done.set_result(result)

    def _checkpoint(self, raw: sqlite3.Connection) -> None:
        with suppress(OSError, sqlite3.Error):
            size = self.path.with_name(f"{DATABASE}-wal").stat().st_size
            if size > CHECKPOINT_BYTES:
                raw.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if size > TRUNCATE_BYTES else 'PASSIVE'})")


@contextmanager
def write_lock(path: Path, wait: float) -> Iterator[None]:
    """Be the only writer of a collection; raise after ``wait`` seconds, naming the process that writes."""
    with path.open("a+b") as stream:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise CollectionBusyError(_busy(path)) from None
                time.sleep(min(0.002, left))
        with suppress(OSError):
            owner = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": time.time()})
            stream.truncate(0)
            stream.write(owner.encode())
            stream.flush()
        yield


def _busy(path: Path) -> str:
    try:
        owner = json.loads(path.read_text())
        return (
            f"process {owner['process']} on {owner['host']} has been writing to {path.parent} for "
            f"{time.time() - owner['since']:.0f} s; try again when it is done"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return f"another process is writing to {path.parent}; try again when it is done"


def clear_error(folder: Path, problem: BaseException) -> BaseException:
    """Return an error of the engine as one sentence that names the fix; others as they are."""
    if not isinstance(problem, sqlite3.Error):
        return problem
    name = getattr(problem, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return NoRoomError(folder, 1 << 20)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return CollectionBusyError(f"another process is writing to {folder}; try again when it is done")
    return CollectionError(f"{folder} cannot be used ({problem}); `diptych verify` says what is damaged")
