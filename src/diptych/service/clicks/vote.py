"""A vote on its way to the file."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from diptych.errors import InvalidInputError
from diptych.service.clicks.kinds import VoteChoice
from diptych.service.clicks.unknown_search_error import UnknownSearchError

_SWAPPED: dict[VoteChoice, VoteChoice] = {"left": "right", "right": "left", "both": "both", "neither": "neither"}


@dataclass(frozen=True, slots=True)
class Vote:
    """Which of two searches a person prefers."""

    left: bytes
    right: bytes
    choice: VoteChoice
    time: float

    def write(self, connection: sqlite3.Connection) -> int:
        """Write the vote instead of an earlier one on the same two searches, and return its number."""
        left, *asked_left, retriever_left = self._search(connection, self.left)
        right, *asked_right, retriever_right = self._search(connection, self.right)
        if asked_left != asked_right or retriever_left == retriever_right:
            raise InvalidInputError("the two searches do not compare; vote on one query asked with two retrievers")
        # In one order, so that a vote on the same two searches from the other side replaces this one.
        first, second, choice = (left, right, self.choice) if left < right else (right, left, _SWAPPED[self.choice])
        added = connection.execute(
            "INSERT OR REPLACE INTO votes (first, second, choice, time) VALUES (?, ?, ?, ?)",
            (first, second, choice, self.time),
        )
        return int(added.lastrowid or 0)

    def _search(self, connection: sqlite3.Connection, search: bytes) -> tuple[int, int, str, int]:
        found: tuple[int, int, str, int] | None = connection.execute(
            "SELECT number, query, target, retriever FROM searches WHERE id = ?", (search,)
        ).fetchone()
        if found is None:
            raise UnknownSearchError(search.hex())
        return found
