"""One bar of an explanation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Contribution:
    """What one class, label, word or pair of features adds to a score.

    Parameters
    ----------
    name :
        The class, label, word or pair.
    query, answer :
        How strong it is on each side, such as a class probability; None where the side has no such number.
    contribution :
        What it adds to the score; negative where it speaks against the answer.
    term :
        The number of the query's term that it belongs to, from 0.

    Examples
    --------
    >>> from diptych.retriever import Contribution
    >>> Contribution("boat", 0.5, 0.25, 0.125).document()
    {'name': 'boat', 'query': 0.5, 'answer': 0.25, 'contribution': 0.125, 'term': 0}
    """

    name: str
    query: float | None
    answer: float | None
    contribution: float
    term: int = 0

    def document(self) -> dict[str, Any]:
        """Return the bar as plain values."""
        return asdict(self)
