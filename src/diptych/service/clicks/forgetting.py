"""Taking things out of a click log for good."""

from __future__ import annotations

import sqlite3

_TABLES = ("votes", "clicks", "drafts", "pages", "searches", "queries", "retrievers")
_BEFORE = (
    "DELETE FROM votes WHERE first IN (SELECT number FROM searches WHERE time < :before)"
    " OR second IN (SELECT number FROM searches WHERE time < :before)",
    "DELETE FROM clicks WHERE search IN (SELECT number FROM searches WHERE time < :before)",
    "DELETE FROM drafts WHERE search IN (SELECT number FROM searches WHERE time < :before)",
    "DELETE FROM pages WHERE search IN (SELECT number FROM searches WHERE time < :before)",
    "DELETE FROM searches WHERE time < :before",
    "DELETE FROM queries WHERE number NOT IN (SELECT query FROM searches)",
    "DELETE FROM retrievers WHERE number NOT IN (SELECT retriever FROM searches)",
)


# One that runs goes on, and begins to count anew.
_INTERLEAVINGS = """
DELETE FROM interleavings WHERE stopped IS NOT NULL AND number NOT IN (SELECT interleaving FROM drafts)
"""


def forget(connection: sqlite3.Connection, before: float | None) -> None:
    """Delete everything, or all that belongs to searches before a time, and give the room back."""
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES if before is None else ():
        connection.execute(f"DELETE FROM {table}")
    for statement in () if before is None else _BEFORE:
        connection.execute(statement, {"before": before})
    connection.execute(_INTERLEAVINGS)
    connection.execute("COMMIT")
    # Deleting leaves the words in unused parts of the file and of the journal.
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
