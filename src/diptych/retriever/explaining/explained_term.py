"""One term of a query, and what it brings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ExplainedTerm:
    """A term of the query: its weight, its own score with the answer, and its part of the whole score.

    ``contribution`` is the part; the parts of all terms sum to the score of the query.
    """

    name: str
    weight: float
    score: float
    contribution: float

    def document(self) -> dict[str, Any]:
        """Return the term as plain values."""
        return asdict(self)
