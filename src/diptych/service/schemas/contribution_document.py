"""One bar of an explanation."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class ContributionDocument(Document):
    """What one class, label, word or pair of features adds to the score."""

    name: str
    """The class, label, word or pair."""
    query: float | None
    """How strong it is in the query, where that is a number."""
    answer: float | None
    """How strong it is in the answer, where that is a number."""
    contribution: float
    """What it adds to the score; below 0 it speaks against the answer."""
    term: int
    """The number of the query's term that it belongs to, from 0."""
