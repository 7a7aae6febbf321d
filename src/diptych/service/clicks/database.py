"""The SQLite file of a click log: its tables, how to open it, and how to delete from it for good."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from diptych.service.clicks.errors import ClickLogError

SCHEMA_VERSION = 3
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
CREATE TABLE IF NOT EXISTS votes (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, second INTEGER NOT NULL, choice TEXT NOT NULL, time REAL NOT NULL,
    UNIQUE (first, second)
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
    if version > SCHEMA_VERSION:
        raise ClickLogError("the click log was written by a newer Diptych; use that one, or move the file away")
    if version < SCHEMA_VERSION:
        _bring_up_to_date(connection)


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    # Another process may do the same at this moment; the second finds it done.
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    if "visitor" not in {column for _, column, *_ in connection.execute("PRAGMA table_info(searches)")}:
        connection.execute("ALTER TABLE searches ADD COLUMN visitor BLOB")
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
    f"DELETE FROM {table}" for table in ("votes", "clicks", "drafts", "pages", "searches", "queries", "retrievers")
)
_IS_OLD = "IN (SELECT number FROM searches WHERE time < :before)"
_DELETE_BEFORE = (
    f"DELETE FROM votes WHERE first {_IS_OLD} OR second {_IS_OLD}",
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
