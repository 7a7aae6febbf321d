"""What clicks say of two interleaved retrievers."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Self

from diptych.service.clicks.interleaving import Interleaving
from diptych.service.clicks.kinds import AGAINST
from diptych.service.clicks.sign_test import sign_test

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
        return [cls._of(connection, one) for one in Interleaving.latest_first(connection)]

    @classmethod
    def _of(cls, connection: sqlite3.Connection, one: Interleaving) -> Self:
        (searches,) = connection.execute(_SEARCHES, (one.number,)).fetchone()
        return cls(one, searches, *connection.execute(_CREDIT, (one.number, AGAINST)).fetchone())
