"""A click on its way to the file."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from diptych.service.clicks.kinds import AGAINST, ClickKind
from diptych.service.clicks.not_shown_error import NotShownError
from diptych.service.clicks.unknown_search_error import UnknownSearchError

_MOST_POSITIONS = 2**31


@dataclass(frozen=True, slots=True)
class Click:
    """What a person did with one result of a search."""

    search: bytes
    item: str
    position: int
    kind: ClickKind
    caption_id: str | None
    time: float

    def write(self, connection: sqlite3.Connection) -> int:
        """Write the click if the search showed the item there, and return its number."""
        found = connection.execute("SELECT number FROM searches WHERE id = ?", (self.search,)).fetchone()
        if found is None:
            raise UnknownSearchError(self.search.hex())
        (search,) = found
        if not self._was_shown(connection, search):
            raise NotShownError(self.item, self.position)
        if self.kind != AGAINST:
            connection.execute("UPDATE searches SET clicked = 1 WHERE number = ? AND clicked = 0", (search,))
        added = connection.execute(
            "INSERT INTO clicks (search, item, position, caption_id, kind, time) VALUES (?, ?, ?, ?, ?, ?)",
            (search, self.item, self.position, _writable(self.caption_id), self.kind, self.time),
        )
        return int(added.lastrowid or 0)

    def _was_shown(self, connection: sqlite3.Connection, search: int) -> bool:
        # What cannot be written to the file was never read from it: halves of characters, enormous numbers.
        if _writable(self.item) != self.item or not 1 <= self.position < _MOST_POSITIONS:
            return False
        shown = connection.execute(
            "SELECT 1 FROM pages WHERE search = ? AND first <= ? AND ? < first + length"
            " AND json_extract(items, '$[' || (? - first) || ']') = ?",
            (search, self.position, self.position, self.position, self.item),
        )
        return shown.fetchone() is not None


def _writable(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
