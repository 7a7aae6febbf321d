"""Searches, pages and clicks as they are written to the tables of the click log."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from diptych.collection.store.dialect import Connection
from diptych.service.clicks.records import (
    NEGATIVE_CLICK,
    ClickKind,
    InterleavedPage,
    NotShownError,
    UnknownSearchError,
    writable,
)

# Numbers of visitors compare within such a period, counted from 1970, and mean nothing after it.
SALT_DAYS = 30
_VISITOR_BYTES = 8
_SALT_BYTES = 32
_LAST_POSITION = 2**31


def visitor_number(db: Connection, visitor: str, time: float) -> str:
    """Return a keyed digest of who searched.

    The key, the salt, is drawn anew for every period of thirty days and the one before is deleted. Without it a number
    cannot be computed from a session again, nor can numbers of two periods be brought together.
    """
    period = int(time // (SALT_DAYS * 86_400))
    salt = db.value("SELECT salt FROM visitor_salt WHERE period = ?", (period,))
    if salt is None:
        salt = secrets.token_hex(_SALT_BYTES)
        db.run("DELETE FROM visitor_salt WHERE period < ?", (period,))
        db.run("INSERT INTO visitor_salt (period, salt) VALUES (?, ?)", (period, salt))
    digest = hmac.digest(bytes.fromhex(salt), visitor.encode(errors="backslashreplace"), "sha256")
    return digest[:_VISITOR_BYTES].hex()


@dataclass(frozen=True, slots=True, eq=False)
class PendingSearch:
    """What was asked and the results of one page; several of one id are pages of one search."""

    id: str
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
    visitor: str | None = None
    page: InterleavedPage | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two pages those of one search."""
        return self.query, self.target, self.retriever, self.fingerprint


def search_identity(db: Connection, search_id: str) -> tuple[str, str, str, str] | None:
    """Return the identity of a search that is written; None where there is no search of that id."""
    sql = (
        "SELECT query.text, target, model, fingerprint FROM search JOIN query ON query.id = search.query"
        " WHERE search.name = ?"
    )
    return next(iter(db.rows(sql, (search_id,))), None)


def write_searches(db: Connection, searches: Sequence[PendingSearch]) -> None:
    """Write searches unless they are there, and their pages."""
    queries = sorted({search.query for search in searches})
    db.many("INSERT INTO query (text) VALUES (?) ON CONFLICT (text) DO NOTHING", ((query,) for query in queries))
    numbers: dict[tuple[str | None, float], str] = {
        (search.visitor, search.time): visitor_number(db, search.visitor, search.time)
        for search in searches
        if search.visitor is not None
    }
    db.many(
        "INSERT INTO search (name, time, query, terms, plain, target, model, fingerprint, no_good_match,"
        " best_probability, visitor)"
        " VALUES (?, ?, (SELECT id FROM query WHERE text = ?), ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
        (
            (
                *(search.id, search.time, search.query, search.terms, int(search.plain), search.target),
                *(search.retriever, search.fingerprint, int(search.no_good_match), search.best_probability),
                numbers.get((search.visitor, search.time)),
            )
            for search in searches
        ),
    )
    pages = [(search, first, items) for search in searches for first, items in _consecutive_runs(search.shown)]
    db.many(
        "INSERT INTO page (search, first, length, time, items)"
        " VALUES ((SELECT id FROM search WHERE name = ?), ?, ?, ?, ?) ON CONFLICT (search, first, length) DO NOTHING",
        ((search.id, first, len(items), search.time, json.dumps(items)) for search, first, items in pages),
    )
    db.many(
        "INSERT INTO draft (search, first, length, interleaving, teams)"
        " VALUES ((SELECT id FROM search WHERE name = ?), ?, ?, ?, ?) ON CONFLICT (search, first, length) DO NOTHING",
        (
            (search.id, first, len(items), search.page.interleaving, _teams(search, search.page, first, len(items)))
            for search, first, items in pages
            if search.page is not None
        ),
    )


def _teams(search: PendingSearch, page: InterleavedPage, first: int, length: int) -> str:
    teams = dict(zip((position for _, position in search.shown), page.teams, strict=True))
    return "".join(teams[position] for position in range(first, first + length))


def _consecutive_runs(shown: tuple[tuple[str, int], ...]) -> list[tuple[int, list[str]]]:
    runs: list[tuple[int, list[str]]] = []
    for item, position in sorted(shown, key=lambda result: result[1]):
        if runs and position == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(item)
        else:
            runs.append((position, [item]))
    return runs


@dataclass(frozen=True, slots=True)
class Click:
    """What a person did with one result of a search."""

    search: str
    item: str
    position: int
    kind: ClickKind
    caption_id: str | None
    time: float
    visitor: str | None = None

    def write(self, db: Connection) -> int:
        """Write the click if the search showed the item there, and return its number."""
        search = db.value("SELECT id FROM search WHERE name = ?", (self.search,))
        if search is None:
            raise UnknownSearchError(self.search)
        if not self._was_shown(db, search):
            raise NotShownError(self.item, self.position)
        if self.visitor is not None:
            # A person who searches without a name and clicks with one is still one visitor.
            number = visitor_number(db, self.visitor, self.time)
            db.run("UPDATE search SET visitor = ? WHERE id = ? AND visitor IS NULL", (number, search))
        if self.kind != NEGATIVE_CLICK:
            db.run("UPDATE search SET clicked = 1 WHERE id = ? AND clicked = 0", (search,))
        caption = None if self.caption_id is None else writable(self.caption_id)
        sql = "INSERT INTO click (search, item, position, caption, kind, time) VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
        return int(db.value(sql, (search, self.item, self.position, caption, self.kind, self.time)))

    def _was_shown(self, db: Connection, search: int) -> bool:
        # Texts that cannot be stored, and numbers beyond 64 bits, were never shown.
        if writable(self.item) != self.item or not 1 <= self.position < _LAST_POSITION:
            return False
        pages = db.rows(
            "SELECT first, items FROM page WHERE search = ? AND first <= ? AND first + length > ?",
            (search, self.position, self.position),
        )
        return any(json.loads(items)[self.position - first] == self.item for first, items in pages)
