"""Two retrievers that answer the same searches together."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, replace
from typing import Self

from diptych.service.clicks.interleaving_error import InterleavingError

_COLUMNS = "number, a, a_fingerprint, b, b_fingerprint, started, stopped"


@dataclass(frozen=True)
class Interleaving:
    """A comparison of two retrievers on live traffic; times are seconds since 1970, ``stopped`` None while it runs."""

    number: int
    a: str
    a_fingerprint: str
    b: str
    b_fingerprint: str
    started: float
    stopped: float | None

    @property
    def name(self) -> str:
        """What the log calls the two of them as one retriever."""
        return f"{self.a} + {self.b}"

    @property
    def fingerprint(self) -> str:
        """A digest of both fingerprints, as long as each."""
        both = hashlib.sha256(f"{self.a_fingerprint} {self.b_fingerprint}".encode()).hexdigest()
        return both[: len(self.a_fingerprint)]

    @classmethod
    def running(cls, connection: sqlite3.Connection) -> Self | None:
        """Return the one that runs, or None."""
        row = connection.execute(f"SELECT {_COLUMNS} FROM interleavings WHERE stopped IS NULL").fetchone()
        return None if row is None else cls(*row)

    @classmethod
    def latest_first(cls, connection: sqlite3.Connection) -> list[Self]:
        """Return all of them."""
        rows = connection.execute(f"SELECT {_COLUMNS} FROM interleavings ORDER BY number DESC")
        return [cls(*row) for row in rows]

    @classmethod
    def start(cls, connection: sqlite3.Connection, a: tuple[str, str], b: tuple[str, str], time: float) -> Self:
        """Write that two retrievers, given as name and fingerprint, are interleaved from now on."""
        present = cls.running(connection)
        if present is not None:
            raise InterleavingError(f"{present.a!r} and {present.b!r} are interleaved now; stop that first")
        added = connection.execute(
            "INSERT INTO interleavings (a, a_fingerprint, b, b_fingerprint, started) VALUES (?, ?, ?, ?, ?)",
            (*a, *b, time),
        )
        return cls(int(added.lastrowid or 0), *a, *b, time, None)

    @classmethod
    def stop(cls, connection: sqlite3.Connection, time: float) -> Self:
        """Write that the one that runs has ended."""
        present = cls.running(connection)
        if present is None:
            raise InterleavingError("no retrievers are interleaved now; start with two of them")
        connection.execute("UPDATE interleavings SET stopped = ? WHERE number = ?", (time, present.number))
        return replace(present, stopped=time)
