"""Two retrievers compared by interleaved searches: what is counted, and the sign test on it."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, replace
from typing import Self

from diptych.service.clicks.records import NEGATIVE_CLICK, InterleavingError


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test: Pr of a split at least as uneven by tossing a fair coin.

    With n = wins + losses and m = min(wins, losses), p = min(1, 2 Σ_{i≤m} C(n, i) / 2ⁿ), and 1 where both are 0. Ties
    are left out, as Dixon and Mood (1946) do.

    >>> from diptych.service.clicks.interleaving import sign_test
    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    # Scipy is loaded by whoever tests; opening a log does not wait for it.
    from scipy.special import bdtr

    n = wins + losses
    if n == 0:
        return 1.0
    return min(1.0, 2.0 * float(bdtr(float(min(wins, losses)), n, 0.5)))


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


_SEARCHES = "SELECT count(DISTINCT search) FROM drafts WHERE interleaving = ?"
# An item counts once in each search, however often it was clicked.
_CREDIT = """
SELECT coalesce(sum(a), 0), coalesce(sum(b), 0), coalesce(sum(a > b), 0), coalesce(sum(b > a), 0),
    coalesce(sum(a = b), 0)
FROM (
    SELECT count(DISTINCT CASE team WHEN 'a' THEN item END) AS a, count(DISTINCT CASE team WHEN 'b' THEN item END) AS b
    FROM (
        SELECT drafts.search AS search, item, substr(teams, position - first + 1, 1) AS team
        FROM drafts JOIN clicks ON clicks.search = drafts.search AND first <= position AND position < first + length
        WHERE interleaving = ? AND kind <> ?
    ) GROUP BY search
)
"""


@dataclass(frozen=True)
class InterleavingReport:
    """How many searches two retrievers answered together, and how the clicks fell.

    ``clicks_a`` and ``clicks_b`` count clicked items by the retriever whose pick they were. A search is won by the one
    with more of them; ``ties`` are searches with as many for each, and at least one. A wish for less of an item is no
    click.
    """

    interleaving: Interleaving
    searches: int
    clicks_a: int
    clicks_b: int
    wins_a: int
    wins_b: int
    ties: int

    @property
    def p_value(self) -> float:
        """How likely so uneven a split of the searches is if neither retriever is better: the exact sign test."""
        return sign_test(self.wins_a, self.wins_b)

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> list[Self]:
        """Count for each interleaving, the latest first."""
        reports = []
        for row in connection.execute(f"SELECT {_COLUMNS} FROM interleavings ORDER BY number DESC").fetchall():
            one = Interleaving(*row)
            (searches,) = connection.execute(_SEARCHES, (one.number,)).fetchone()
            credit = connection.execute(_CREDIT, (one.number, NEGATIVE_CLICK)).fetchone()
            reports.append(cls(one, searches, *credit))
        return reports
