"""How much a click log holds."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class LogCounts:
    """Numbers of what was asked, shown, clicked and voted; times are seconds since 1970, None of an empty log."""

    searches: int
    queries: int
    results_shown: int
    clicks: int
    votes: int
    since: float | None
    until: float | None

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Self:
        """Count."""
        row = connection.execute(
            "SELECT (SELECT count(*) FROM searches), (SELECT count(*) FROM queries),"
            " (SELECT coalesce(sum(length), 0) FROM pages INDEXED BY pages_by_place),"
            " (SELECT count(*) FROM clicks), (SELECT count(*) FROM votes),"
            " (SELECT min(time) FROM searches), (SELECT max(time) FROM searches)"
        ).fetchone()
        return cls(*row)
