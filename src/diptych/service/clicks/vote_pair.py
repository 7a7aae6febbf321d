"""What people think of two retrievers."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from diptych.service.clicks.kinds import VoteChoice
from diptych.service.clicks.sign_test import sign_test

_COUNTS = """
SELECT one.name, one.fingerprint, other.name, other.fingerprint, choice, count(*)
FROM votes
JOIN searches AS a ON a.number = first JOIN retrievers AS one ON one.number = a.retriever
JOIN searches AS b ON b.number = second JOIN retrievers AS other ON other.number = b.retriever
GROUP BY 1, 2, 3, 4, 5
"""
_SWAPPED = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class VotePair:
    """The votes on two retrievers, whichever side each was shown on.

    ``p_value`` is that of the sign test on the votes for one of them.
    """

    left: str
    left_fingerprint: str
    right: str
    right_fingerprint: str
    left_wins: int
    right_wins: int
    both: int
    neither: int

    @property
    def p_value(self) -> float:
        """How likely so uneven a split is if neither is better."""
        return sign_test(self.left_wins, self.right_wins)


def vote_pairs(connection: sqlite3.Connection) -> list[VotePair]:
    """Return the votes on each pair of retrievers, in the order of their names."""
    counts: dict[tuple[str, str, str, str], dict[VoteChoice, int]] = {}
    for *names, choice, count in connection.execute(_COUNTS):
        one, other = tuple(names[:2]), tuple(names[2:])
        left, right, side = (one, other, choice) if one <= other else (other, one, _SWAPPED.get(choice, choice))
        pair = counts.setdefault((*left, *right), {"left": 0, "right": 0, "both": 0, "neither": 0})
        pair[side] += count
    return [
        VotePair(*names, pair["left"], pair["right"], pair["both"], pair["neither"])
        for names, pair in sorted(counts.items())
    ]
