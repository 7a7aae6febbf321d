"""What SQLite and PostgreSQL say differently, and nothing else."""

from __future__ import annotations

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import AnyArray, IntArray

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

MAX_PARAMETERS = 30_000

_WORD = re.compile(r"\{([a-z]+)\}")
Values = Sequence[Any]


def schema_statements(engine: str, words: Mapping[str, str]) -> list[str]:
    """Return the statements that make the tables, in the words of an engine, and its word index."""
    folder = resources.files(__package__)
    text = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("schema.sql", f"{engine}.sql"))
    # Lines within a statement are indented.
    return [statement for statement in re.split(r";\n(?! )", in_words(text, words)) if statement.strip()]


def in_words(text: str, words: Mapping[str, str]) -> str:
    """Return a text with its words in braces replaced.

    >>> in_words("a {int} DEFAULT '{}'", SQLITE_WORDS)
    "a INTEGER DEFAULT '{}'"
    """
    return _WORD.sub(lambda match: words[match[1]], text)


class Connection(ABC):
    """One transaction of one thread. Statements have ``?`` where values stand, whatever the engine.

    ``raw`` is the connection of the driver. ``writes`` says that it belongs to a job: what it sees may be undone.
    ``replica`` says that it goes to the second server.
    """

    engine: ClassVar[str]
    """``"sqlite"`` or ``"postgres"``."""

    words: ClassVar[Mapping[str, str]]
    """What the words in braces of a schema mean."""

    _joined: ClassVar[str]
    _list: ClassVar[tuple[str, str, str]]
    _position: ClassVar[str]

    def __init__(self, raw: Any, *, writes: bool = False, replica: bool = False) -> None:
        self.raw, self.writes, self.replica = raw, writes, replica

    @abstractmethod
    def _execute(self, sql: str, values: Values) -> Any: ...

    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        found: list[tuple[Any, ...]] = self._execute(sql, values).fetchall()
        return found

    def value(self, sql: str, values: Values = ()) -> Any:
        """Return the first column of the first row, None where there is no row."""
        row = self._execute(sql, values).fetchone()
        return None if row is None else row[0]

    def ids(self, sql: str, values: Values = ()) -> IntArray:
        """Return the one integer column of a query as an array of int64, in the order of the query."""
        # One long text is read three times as fast as a row for each number.
        text = self.value(f"WITH found(number) AS ({sql}) SELECT {self._joined} FROM found", values)
        return np.fromstring(text, dtype=np.int64, sep=",") if text else np.zeros(0, dtype=np.int64)

    def run(self, sql: str, values: Values = ()) -> int:
        """Run a statement, and return how many rows it changed."""
        return int(self._execute(sql, values).rowcount)

    @abstractmethod
    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run a statement for each row of values."""

    @abstractmethod
    def load(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        """Insert many rows, as fast as the engine can."""

    @abstractmethod
    def load_arrays(self, table: str, columns: Sequence[str], arrays: Sequence[AnyArray]) -> None:
        """Insert rows whose columns are arrays: integers, float16 rows, packed codes, or float32 rows."""

    @abstractmethod
    def next_ids(self, table: str, count: int) -> Sequence[int]:
        """Return ids for new rows, which must be inserted by this job."""

    def among(self, column: str, ids: IntArray | Sequence[int]) -> tuple[str, Values]:
        """Return the condition that a column has one of some ids, and its values."""
        condition, opening, closing = self._list
        listed = ",".join(map(str, np.asarray(ids, dtype=np.int64).tolist()))
        return f"{column} {condition}", (f"{opening}{listed}{closing}",)

    def contains(self, column: str) -> str:
        """Return the condition that a text column contains a value, which is given as ``?``."""
        return f"{self._position}({column}, ?) > 0"


def has_table(db: Connection, name: str) -> bool:
    """Return True if there is a table of that name."""
    if db.engine == "sqlite":
        return bool(db.value("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))
    return db.value("SELECT to_regclass(?)::text", (name,)) is not None


class SqliteConnection(Connection):
    """A connection of SQLite as the tables see it."""

    engine = "sqlite"
    words = SQLITE_WORDS
    _joined = "group_concat(number)"
    _list = ("IN (SELECT value FROM json_each(?))", "[", "]")
    _position = "instr"
    last_change: tuple[int, int] | None = None

    def _execute(self, sql: str, values: Values) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.raw.execute(sql, values)
        return cursor

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run a statement for each row of values."""
        self.raw.executemany(sql, rows)

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        """Insert many rows, as fast as the engine can."""
        rows, marks = iter(rows), f"({', '.join('?' * len(columns))})"
        # Many rows to a statement: other threads run while it works, and it notes the last id once.
        while part := list(islice(rows, MAX_PARAMETERS // len(columns))):
            listed = ", ".join([marks] * len(part))
            values = list(chain.from_iterable(part))
            self.raw.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {listed}", values)

    def load_arrays(self, table: str, columns: Sequence[str], arrays: Sequence[AnyArray]) -> None:
        """Insert rows whose columns are arrays: integers, float16 rows, packed codes, or float32 rows."""
        values = (array.tolist() if array.ndim == 1 else [row.tobytes() for row in array] for array in arrays)
        self.load(table, columns, zip(*values, strict=True))

    def next_ids(self, table: str, count: int) -> Sequence[int]:
        """Return ids for new rows, which must be inserted by this job."""
        last = self.value("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)) or 0
        return range(last + 1, last + 1 + count)
