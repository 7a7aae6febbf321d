"""The database of a collection: read in transactions of each thread, written by one job after the other."""

from __future__ import annotations

import os
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from diptych.collection.store.dialect import Connection, has_table, schema_statements
from diptych.errors import CollectionError

DERIVED = "derived"
"""The folder of what can be made again: vector files and columns."""

LAST_CHANGE = "SELECT max(id) FROM change"
FORMAT = 7
MAX_CHANGES = 100_000
"""How many changes are kept for readers; those that lag further behind read all items again."""
WRITE_WAIT_S = 30.0
MAX_IDLE_CONNECTIONS = 16

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
        self._forget_connections()

    def _forget_connections(self) -> None:
        """Start without connections and threads: in a new store, and in a process that was forked from another."""
        self._process = os.getpid()
        self._local = threading.local()
        self._idle: list[Any] = []
        self._idle_replica: list[Any] = []

    def _check_process(self) -> None:
        if self._process != os.getpid():
            # Neither engine allows a connection in two processes: those of the parent are kept, unused, never closed.
            self._of_parent = self._idle
            self._forget_connections()

    @contextmanager
    def reading(self, *, replica: bool = False) -> Iterator[Connection]:
        """Read in one transaction: everything in the block is of one moment.

        With ``replica`` a second server may answer. Blocks of one thread may be nested, and share the transaction of
        the outermost one. In a job the block reads what the job has written.
        """
        self._check_process()
        outer = getattr(self._local, "db", None)
        if outer is not None:
            yield outer
            return
        with self.clear_errors():
            db = self._begin_reading(replica)
            self._local.db = db
            try:
                yield db
            finally:
                self._local.db = None
                self._end_reading(db)

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Raise an error of the engine as one sentence that names the fix; others, and faults of SQL, as they are."""
        try:
            yield
        except Exception as problem:
            if (clear := self._clear(problem)) is problem:
                raise
            raise clear from problem

    def _clear(self, problem: BaseException) -> BaseException:
        clear = self._explained(problem)
        if clear is None:
            return problem
        clear.__cause__ = problem
        return clear

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
        return self._write(job, self.patience if wait is None else wait, freeing)

    @property
    def patience(self) -> float:
        """For how many seconds jobs of this thread wait for others that write."""
        return float(getattr(self._local, "wait", self.write_wait))

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

    def warnings(self) -> tuple[str, ...]:
        """Return what a server should be set to, in sentences."""
        return ()

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the tables take."""

    def close(self) -> None:
        """Close all idle connections; those in use are closed with their blocks."""
        self._check_process()
        for idle in (self._idle, self._idle_replica):
            while idle:
                idle.pop().raw.close()

    def _end_reading(self, db: Connection) -> None:
        with suppress(Exception):
            db.raw.execute("ROLLBACK")
        self._keep(db)

    def _keep(self, db: Connection) -> None:
        idle = self._idle_replica if db.replica else self._idle
        if self._is_usable(db) and len(idle) < MAX_IDLE_CONNECTIONS:
            db.writes = False
            idle.append(db)
        else:
            db.raw.close()

    def last_change(self) -> int:
        """Return the number of the latest change, by whichever process; it only grows."""
        self._check_process()
        if (outer := getattr(self._local, "db", None)) is not None:
            return int(outer.value(LAST_CHANGE) or 0)
        with self.clear_errors():
            db = self._idle_connection()
            found = self._last_change(db)
            self._keep(db)
        return found

    def _is_usable(self, db: Connection) -> bool:
        return True

    @abstractmethod
    def _idle_connection(self) -> Any: ...

    @abstractmethod
    def _last_change(self, db: Any) -> int: ...

    @abstractmethod
    def _explained(self, problem: BaseException) -> CollectionError | None: ...

    @abstractmethod
    def _begin_reading(self, replica: bool) -> Connection: ...

    @abstractmethod
    def _write(self, job: Job[Result], wait: float, freeing: bool) -> Result: ...


def create_tables(db: Connection) -> None:
    """Make the tables of an empty collection, with a name of its own."""
    for statement in schema_statements(db.engine, db.words):
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


def note_changes(db: Connection, kind: str, ids: Sequence[int | None] = (None,)) -> None:
    """Tell readers which items have changed, or that something else has."""
    db.load("change", ("kind", "item"), [(kind, one) for one in ids])
    db.run("DELETE FROM change WHERE id <= (SELECT max(id) FROM change) - ?", (MAX_CHANGES,))


def setting(db: Connection, name: str, default: str = "") -> str:
    """Return a setting of the collection."""
    found = db.value("SELECT value FROM meta WHERE name = ?", (name,))
    return default if found is None else str(found)


def put_setting(db: Connection, name: str, value: str) -> None:
    """Store a setting of the collection."""
    db.run(
        "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
    note_changes(db, "settings")
