"""What a click log records (searches with the results shown, and clicks), and what goes wrong with one."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from diptych.errors import DiptychError, InvalidInputError

if TYPE_CHECKING:
    from diptych.metrics.significance import Team

Cause = Literal["full", "busy", "unusable"]


class ClickLogError(DiptychError):
    """The click log cannot be read or written; searching goes on without it.

    ``cause``: the disk is full, another process was writing (a later call may work), or the file cannot be used at all.
    """

    def __init__(self, message: str, *, cause: Cause = "unusable") -> None:
        super().__init__(message)
        self.cause: Cause = cause


class UnknownSearchError(DiptychError, LookupError):
    """No search of that id is in the log.

    >>> from diptych.service.clicks import UnknownSearchError
    >>> print(UnknownSearchError("beef"))
    there is no search 'beef' in the click log; search again and use the search_id of the answer
    """

    def __init__(self, search_id: str) -> None:
        # The id came from outside: the message shows no more of it than an id is long.
        super().__init__(
            f"there is no search {search_id[:40]!r} in the click log; search again and use the search_id of the answer"
        )


class NotShownError(InvalidInputError):
    """The item was not shown at that position of the search.

    >>> from diptych.service.clicks import NotShownError
    >>> print(NotShownError("cat-1", 3))
    the search did not show 'cat-1' at position 3; send the id and the rank of an answer of that search
    """

    def __init__(self, item: str, position: int) -> None:
        super().__init__(
            f"the search did not show {item[:80]!r} at position {position}; "
            "send the id and the rank of an answer of that search"
        )


class InterleavingError(DiptychError):
    """Two retrievers are interleaved already, or none are."""


ClickKind = Literal["open", "original", "more_like", "less_like"]
CLICK_KINDS: tuple[ClickKind, ...] = get_args(ClickKind)

# Asking for less of something is recorded, but it is no sign that the answer was wanted.
NEGATIVE_CLICK: ClickKind = "less_like"


def normalised_query(text: str) -> str:
    """Return the query with one form of every character, in lower case, with single blanks, and else as it was.

    >>> from diptych.service.clicks.records import normalised_query
    >>> normalised_query("  Golden\\tRetriever ")
    'golden retriever'
    """
    return " ".join(unicodedata.normalize("NFKC", writable(text)).casefold().split())


def is_plain(query: str, terms: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether a search asked for words and nothing else: no picture, no item, nothing subtracted.

    >>> from diptych.service.clicks.records import is_plain
    >>> is_plain("dog", [{"text": "dog", "weight": 1.0}]), is_plain("dog - cat", [{"text": "cat", "weight": -1}])
    (True, False)
    """
    if terms is None:
        return not any(word.startswith(("item:", "upload:")) or word == "-" for word in query.split())
    return all(term.get("text") is not None and (term.get("weight") or 1.0) > 0 for term in terms)


@dataclass(frozen=True, slots=True)
class InterleavedPage:
    """The teams of one page's results, in order; pages with the same ``draw``, formed as the id of a search, fit."""

    interleaving: int
    draw: str
    teams: Sequence[Team]


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
    visitor: bytes | None = None
    page: InterleavedPage | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two pages those of one search."""
        return self.query, self.target, self.retriever, self.fingerprint

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the search unless it is there, and its page."""
        connection.execute("INSERT OR IGNORE INTO queries (text) VALUES (?)", (self.query,))
        retriever = (self.retriever, self.fingerprint)
        connection.execute("INSERT OR IGNORE INTO retrievers (name, fingerprint) VALUES (?, ?)", retriever)
        asked = (self.id, self.time, self.query, self.terms, self.plain, self.target)
        connection.execute(
            "INSERT OR IGNORE INTO searches"
            " (id, time, query, terms, plain, target, retriever, no_good_match, best_probability, visitor)"
            " VALUES (?, ?, (SELECT number FROM queries WHERE text = ?), ?, ?, ?,"
            " (SELECT number FROM retrievers WHERE name = ? AND fingerprint = ?), ?, ?, ?)",
            (*asked, *retriever, self.no_good_match, self.best_probability, self.visitor),
        )
        for first, items in _consecutive_runs(self.shown):
            connection.execute(
                "INSERT OR IGNORE INTO pages (search, first, length, time, items)"
                " SELECT number, ?, ?, ?, ? FROM searches WHERE id = ?",
                (first, len(items), self.time, json.dumps(items), self.id),
            )
            if self.page is not None:
                self._write_teams(connection, self.page, first, len(items))

    def _write_teams(self, connection: sqlite3.Connection, page: InterleavedPage, first: int, length: int) -> None:
        teams = dict(zip((position for _, position in self.shown), page.teams, strict=True))
        connection.execute(
            "INSERT OR IGNORE INTO drafts (search, first, length, interleaving, teams)"
            " SELECT number, ?, ?, ?, ? FROM searches WHERE id = ?",
            (first, length, page.interleaving, "".join(teams[first + place] for place in range(length)), self.id),
        )


def _consecutive_runs(shown: tuple[tuple[str, int], ...]) -> list[tuple[int, list[str]]]:
    runs: list[tuple[int, list[str]]] = []
    for item, position in sorted(shown, key=lambda result: result[1]):
        if runs and position == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(item)
        else:
            runs.append((position, [item]))
    return runs


_LAST_POSITION = 2**31


@dataclass(frozen=True, slots=True)
class Click:
    """What a person did with one result of a search."""

    search: bytes
    item: str
    position: int
    kind: ClickKind
    caption_id: str | None
    time: float
    visitor: bytes | None = None

    def write(self, connection: sqlite3.Connection) -> int:
        """Write the click if the search showed the item there, and return its number."""
        found = connection.execute("SELECT number FROM searches WHERE id = ?", (self.search,)).fetchone()
        if found is None:
            raise UnknownSearchError(self.search.hex())
        search = int(found[0])
        if not self._was_shown(connection, search):
            raise NotShownError(self.item, self.position)
        if self.visitor is not None:
            # Whoever searches without a name and clicks with one is no second person.
            known = "UPDATE searches SET visitor = ? WHERE number = ? AND visitor IS NULL"
            connection.execute(known, (self.visitor, search))
        if self.kind != NEGATIVE_CLICK:
            connection.execute("UPDATE searches SET clicked = 1 WHERE number = ? AND clicked = 0", (search,))
        caption_id = None if self.caption_id is None else writable(self.caption_id)
        added = connection.execute(
            "INSERT INTO clicks (search, item, position, caption_id, kind, time) VALUES (?, ?, ?, ?, ?, ?)",
            (search, self.item, self.position, caption_id, self.kind, self.time),
        )
        return int(added.lastrowid or 0)

    def _was_shown(self, connection: sqlite3.Connection, search: int) -> bool:
        # What cannot be written to the file was never read from it: halves of characters, enormous numbers.
        if writable(self.item) != self.item or not 1 <= self.position < _LAST_POSITION:
            return False
        shown = connection.execute(
            "SELECT 1 FROM pages WHERE search = ? AND first <= ? AND ? < first + length"
            " AND json_extract(items, '$[' || (? - first) || ']') = ?",
            (search, self.position, self.position, self.position, self.item),
        )
        return shown.fetchone() is not None


def writable(text: str) -> str:
    """Return a text as it can be stored: half a surrogate pair becomes a question mark, NUL the replacement sign."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
