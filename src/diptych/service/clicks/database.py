"""The SQLite file of a click log: its tables, how to open it and to delete for good, and the thread that writes."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from diptych.service.clicks.records import ClickLogError, PendingSearch

SCHEMA_VERSION = 4
BUSY_SECONDS = 10.0

# A page is a run of results at consecutive positions, so that a search costs one row and not one for each result.
# Pages have a time of their own, and a search says whether it was clicked: with that, every number of the report comes
# from one index alone. A draft says of each result of a page which of two interleaved retrievers it came from, one
# letter each.
_TABLES = """
CREATE TABLE IF NOT EXISTS queries (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS retrievers (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL, UNIQUE (name, fingerprint)
);
CREATE TABLE IF NOT EXISTS searches (
    number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, time REAL NOT NULL, query INTEGER NOT NULL, terms TEXT,
    plain INTEGER NOT NULL, target TEXT NOT NULL, retriever INTEGER NOT NULL, no_good_match INTEGER NOT NULL,
    best_probability REAL, clicked INTEGER NOT NULL DEFAULT 0, visitor BLOB
);
CREATE TABLE IF NOT EXISTS pages (
    search INTEGER NOT NULL, first INTEGER NOT NULL, length INTEGER NOT NULL, time REAL NOT NULL, items TEXT NOT NULL,
    PRIMARY KEY (search, first, length)
);
CREATE TABLE IF NOT EXISTS clicks (
    id INTEGER PRIMARY KEY, search INTEGER NOT NULL, item TEXT NOT NULL, position INTEGER NOT NULL, caption_id TEXT,
    kind TEXT NOT NULL, time REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS interleavings (
    number INTEGER PRIMARY KEY, a TEXT NOT NULL, a_fingerprint TEXT NOT NULL, b TEXT NOT NULL,
    b_fingerprint TEXT NOT NULL, started REAL NOT NULL, stopped REAL
);
CREATE TABLE IF NOT EXISTS drafts (
    search INTEGER NOT NULL, first INTEGER NOT NULL, length INTEGER NOT NULL, interleaving INTEGER NOT NULL,
    teams TEXT NOT NULL, PRIMARY KEY (search, first, length)
);
CREATE INDEX IF NOT EXISTS searches_in_time ON searches (time);
CREATE INDEX IF NOT EXISTS searches_by_query ON searches (query, time, no_good_match, clicked);
CREATE INDEX IF NOT EXISTS pages_by_place ON pages (first, length, time);
CREATE INDEX IF NOT EXISTS clicks_in_time ON clicks (time, kind);
CREATE INDEX IF NOT EXISTS clicks_by_place ON clicks (position, search, kind, time);
CREATE INDEX IF NOT EXISTS clicks_of_search ON clicks (search, position, item, kind);
CREATE INDEX IF NOT EXISTS drafts_of_interleaving ON drafts (interleaving, search, first, length, teams);
"""


def connect(path: Path, *, most_bytes: int | None = None) -> sqlite3.Connection:
    """Open the file, readable by its owner alone, and make what it lacks."""
    try:
        make_private_file(path)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise ClickLogError(f"cannot open the click log {path}: {error}") from error
    try:
        _prepare(connection, most_bytes)
    except sqlite3.Error as error:
        connection.close()
        raise click_log_error(path, error) from error
    except ClickLogError:
        connection.close()
        raise
    return connection


def click_log_error(path: Path, error: sqlite3.Error) -> ClickLogError:
    """Return what to say when the database refuses."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ClickLogError("another process keeps writing to the click log; try again", cause="busy")
    if code == sqlite3.SQLITE_FULL:
        return ClickLogError("there is no room left for the click log; free some, or forget old searches", cause="full")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return ClickLogError(f"{path} is damaged or no click log; move it away, and a new one is begun")
    return ClickLogError(f"cannot write the click log {path}: {error}")


def make_private_file(path: Path) -> None:
    """Make an empty file for its owner alone, unless there is one.

    One that is there is not even opened: closing it would drop the locks that SQLite holds on it in this process, and
    the next process to leave would remove the journal under the feet of this one, with the clicks in it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _prepare(connection: sqlite3.Connection, most_bytes: int | None) -> None:
    _enable_wal(connection)
    # An acknowledged click survives a power cut, not only the end of the process.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 16777216")
    if most_bytes is not None:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA max_page_count = {max(1, most_bytes // page_bytes)}")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, SCHEMA_VERSION):
        raise ClickLogError(
            f"the click log has format {version}, and this Diptych uses {SCHEMA_VERSION}; move the file away to begin "
            "a new one"
        )
    if version == 0:
        # Another process may create the tables at the same time: the lock makes this one wait and find them.
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


_DELETE_ALL = tuple(
    f"DELETE FROM {table}" for table in ("clicks", "drafts", "pages", "searches", "queries", "retrievers")
)
_IS_OLD = "IN (SELECT number FROM searches WHERE time < :before)"
_DELETE_BEFORE = (
    *(f"DELETE FROM {table} WHERE search {_IS_OLD}" for table in ("clicks", "drafts", "pages")),
    "DELETE FROM searches WHERE time < :before",
    "DELETE FROM queries WHERE number NOT IN (SELECT query FROM searches)",
    "DELETE FROM retrievers WHERE number NOT IN (SELECT retriever FROM searches)",
)
# One that runs goes on, and begins to count anew.
_DELETE_INTERLEAVINGS = (
    "DELETE FROM interleavings WHERE stopped IS NOT NULL AND number NOT IN (SELECT interleaving FROM drafts)"
)


def delete_searches(connection: sqlite3.Connection, before: float | None) -> None:
    """Delete everything, or all that belongs to searches before a time, and give the room back."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _DELETE_ALL if before is None else _DELETE_BEFORE:
        connection.execute(statement, {"before": before})
    connection.execute(_DELETE_INTERLEAVINGS)
    connection.execute("COMMIT")
    # Deleting leaves the words in unused parts of the file and of the journal.
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


Result = TypeVar("Result")
PendingWrite = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]
BATCH_SECONDS = 0.05
RETRY_SECONDS = 1.0


class LogWriter:
    """Writes searches in batches a moment later, and everything else at once, many callers to one transaction.

    No more than ``most_waiting`` searches wait, others are not recorded; the file grows to ``most_bytes`` at most.
    """

    def __init__(self, path: Path, *, most_waiting: int, most_bytes: int | None) -> None:
        self._path = path
        self._most_waiting = most_waiting
        self._connection = connect(path, most_bytes=most_bytes)
        self._changed = threading.Condition()
        self._searches: deque[PendingSearch] = deque()
        self._identities: dict[bytes, tuple[str, str, str, str]] = {}
        self._n_waiting = 0
        self._works: list[PendingWrite] = []
        self._closed = False
        self._pause = BATCH_SECONDS
        self.failure: ClickLogError | None = None
        self._thread = threading.Thread(target=self._write_until_closed, name=f"click log {path.parent}", daemon=True)
        self._thread.start()

    def enqueue(self, search: PendingSearch) -> bool:
        """Have a search written within a moment; return whether there was room for it."""
        with self._changed:
            if self._closed or self._n_waiting >= self._most_waiting:
                return False
            self._searches.append(search)
            self._identities[search.id] = search.identity
            self._n_waiting += 1
            self._changed.notify()
        return True

    def waiting(self, search_id: bytes) -> tuple[str, str, str, str] | None:
        """Return the identity of a search that is not written yet."""
        with self._changed:
            return self._identities.get(search_id)

    def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run ``work``, which refuses before it writes, in the next transaction, and return its result once durable."""
        promise: Future[Result] = Future()
        with self._changed:
            if self._closed:
                raise ClickLogError("the click log is closed; the service is shutting down", cause="busy")
            self._works.append((work, promise))
            self._changed.notify()
        return promise.result()

    def close(self) -> None:
        """Write what waits and close the file."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _write_until_closed(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._works or self._searches)
                # Searches wait for company; a person who clicked does not.
                self._changed.wait_for(lambda: self._closed or self._works, timeout=self._pause)
                is_last = self._closed
                searches, works = list(self._searches), self._works
                self._searches.clear()
                self._works = []
            self._write(searches, works)
            if is_last:
                self._connection.close()
                return

    def _write(self, searches: list[PendingSearch], works: list[PendingWrite]) -> None:
        try:
            outcomes = self._transaction(searches, works)
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            with self._changed:
                self._searches.extendleft(reversed(searches))
                self._pause = RETRY_SECONDS
                self.failure = click_log_error(self._path, error)
            for _, promise in works:
                promise.set_exception(click_log_error(self._path, error))
            return
        with self._changed:
            self._pause = BATCH_SECONDS
            self.failure = None
            self._n_waiting -= len(searches)
            for search in searches:
                self._identities.pop(search.id, None)
        for promise, outcome in outcomes:
            if isinstance(outcome, Exception):
                promise.set_exception(outcome)
            else:
                promise.set_result(outcome)

    def _transaction(self, searches: list[PendingSearch], works: list[PendingWrite]) -> list[tuple[Future[Any], Any]]:
        self._connection.execute("BEGIN IMMEDIATE")
        for search in searches:
            search.write(self._connection)
        outcomes: list[tuple[Future[Any], Any]] = []
        for work, promise in works:
            try:
                outcomes.append((promise, work(self._connection)))
            except sqlite3.Error:
                raise
            except Exception as refusal:
                # It is for whoever asked; the others of the transaction, and this thread, go on.
                outcomes.append((promise, refusal))
        self._connection.execute("COMMIT")
        return outcomes
