"""What SQLite and PostgreSQL say differently, and nothing else."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, Protocol

import numpy as np

from diptych.arrays import IntArray

SQLITE_WORDS: Mapping[str, str] = {
    "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "int": "INTEGER",
    "real": "REAL",
    "blob": "BLOB",
    "text": "TEXT",
    "strict": "STRICT",
    "clustered": "STRICT, WITHOUT ROWID",
}
"""What the words in braces of ``schema.sql`` mean in SQLite."""

_WORD = re.compile(r"\{([a-z]+)\}")
Values = Sequence[Any]


def schema_statements(words: Mapping[str, str]) -> str:
    """Return the statements that make the tables, in the words of an engine."""
    text = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    return in_words(text, words)


def in_words(text: str, words: Mapping[str, str]) -> str:
    """Return a text with its words in braces replaced.

    >>> in_words("a {int} DEFAULT '{}'", SQLITE_WORDS)
    "a INTEGER DEFAULT '{}'"
    """
    return _WORD.sub(lambda match: words[match[1]], text)


class Connection(Protocol):
    """One transaction of one thread. Statements have ``?`` where values stand, whatever the engine."""

    engine: str
    """``"sqlite"`` or ``"postgres"``."""

    words: Mapping[str, str]
    """What the words in braces of a schema mean."""

    writes: bool
    """Whether it belongs to a job: what it sees may still be undone."""

    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""

    def value(self, sql: str, values: Values = ()) -> Any:
        """Return the first column of the first row, None where there is no row."""

    def ids(self, sql: str, values: Values = ()) -> IntArray:
        """Return the one integer column of a query as an array of int64, in no particular order."""

    def run(self, sql: str, values: Values = ()) -> int:
        """Run a statement, and return how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run a statement for each row of values."""

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        """Insert many rows, as fast as the engine can."""

    def among(self, column: str, ids: IntArray | Sequence[int]) -> tuple[str, Values]:
        """Return the condition that a column has one of some ids, and its values."""

    def contains(self, column: str) -> str:
        """Return the condition that a text column contains a value, which is given as ``?``."""


def has_table(db: Connection, name: str) -> bool:
    """Return True if there is a table of that name."""
    if db.engine == "sqlite":
        return bool(db.value("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))
    return db.value("SELECT to_regclass(?)::text", (name,)) is not None


class SqliteConnection:
    """A connection of SQLite as the tables see it."""

    engine = "sqlite"
    words = SQLITE_WORDS

    def __init__(self, raw: sqlite3.Connection, *, writes: bool = False) -> None:
        self.raw, self.writes = raw, writes
        self.last_change: tuple[int, int] | None = None

    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self.raw.execute(sql, values).fetchall()

    def value(self, sql: str, values: Values = ()) -> Any:
        """Return the first column of the first row, None where there is no row."""
        row = self.raw.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def ids(self, sql: str, values: Values = ()) -> IntArray:
        """Return the one integer column of a query as an array of int64."""
        # One long text is read three times as fast as a row for each number.
        text = self.value(f"WITH found(number) AS ({sql}) SELECT group_concat(number) FROM found", values)
        return np.fromstring(text, dtype=np.int64, sep=",") if text else np.zeros(0, dtype=np.int64)

    def run(self, sql: str, values: Values = ()) -> int:
        """Run a statement, and return how many rows it changed."""
        return self.raw.execute(sql, values).rowcount

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run a statement for each row of values."""
        self.raw.executemany(sql, rows)

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        """Insert many rows, as fast as the engine can."""
        marks = ", ".join("?" * len(columns))
        self.raw.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def among(self, column: str, ids: IntArray | Sequence[int]) -> tuple[str, Values]:
        """Return the condition that a column has one of some ids, and its values."""
        listed = ",".join(map(str, np.asarray(ids, dtype=np.int64).tolist()))
        return f"{column} IN (SELECT value FROM json_each(?))", (f"[{listed}]",)

    def contains(self, column: str) -> str:
        """Return the condition that a text column contains a value, which is given as ``?``."""
        return f"instr({column}, ?) > 0"
