"""A search on its way to the file."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from diptych.service.clicks.draft import Draft


@dataclass(frozen=True, slots=True)
class PendingSearch:
    """What was asked and the results of one page; several of one id are pages of one search."""

    id: bytes
    time: float
    query: str
    terms: str | None
    plain: bool
    target: str
    retriever: str
    fingerprint: str
    no_good_match: bool
    best_probability: float | None
    shown: tuple[tuple[str, int], ...]
    draft: Draft | None = None

    @property
    def asked(self) -> tuple[str, str, str, str]:
        """What makes two pages those of one search."""
        return self.query, self.target, self.retriever, self.fingerprint

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the search unless it is there, and its page."""
        connection.execute("INSERT OR IGNORE INTO queries (text) VALUES (?)", (self.query,))
        retriever = (self.retriever, self.fingerprint)
        connection.execute("INSERT OR IGNORE INTO retrievers (name, fingerprint) VALUES (?, ?)", retriever)
        connection.execute(
            "INSERT OR IGNORE INTO searches"
            " (id, time, query, terms, plain, target, retriever, no_good_match, best_probability)"
            " VALUES (?, ?, (SELECT number FROM queries WHERE text = ?), ?, ?, ?,"
            " (SELECT number FROM retrievers WHERE name = ? AND fingerprint = ?), ?, ?)",
            (
                self.id,
                self.time,
                self.query,
                self.terms,
                self.plain,
                self.target,
                *retriever,
                self.no_good_match,
                self.best_probability,
            ),
        )
        for first, items in _runs(self.shown):
            connection.execute(
                "INSERT OR IGNORE INTO pages (search, first, length, time, items)"
                " SELECT number, ?, ?, ?, ? FROM searches WHERE id = ?",
                (first, len(items), self.time, json.dumps(items), self.id),
            )
            if self.draft is not None:
                self._write_draft(connection, self.draft, first, len(items))

    def _write_draft(self, connection: sqlite3.Connection, draft: Draft, first: int, length: int) -> None:
        teams = dict(zip((position for _, position in self.shown), draft.teams, strict=True))
        connection.execute(
            "INSERT OR IGNORE INTO drafts (search, first, length, interleaving, teams)"
            " SELECT number, ?, ?, ?, ? FROM searches WHERE id = ?",
            (first, length, draft.interleaving, "".join(teams[first + place] for place in range(length)), self.id),
        )


def _runs(shown: tuple[tuple[str, int], ...]) -> list[tuple[int, list[str]]]:
    runs: list[tuple[int, list[str]]] = []
    for item, position in sorted(shown, key=lambda result: result[1]):
        if runs and position == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(item)
        else:
            runs.append((position, [item]))
    return runs
