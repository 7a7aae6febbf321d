"""The votes on two retrievers, as clients see them."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class VotePairDocument(Document):
    """How often each of two retrievers was preferred, whichever side it was shown on."""

    left: str
    """The name of one retriever."""
    left_fingerprint: str
    """Which state of it."""
    right: str
    """The name of the other."""
    right_fingerprint: str
    """Which state of it."""
    left_wins: int
    """Votes for the one."""
    right_wins: int
    """Votes for the other."""
    both: int
    """Votes that found both good."""
    neither: int
    """Votes that found neither good."""
    p_value: float
    """How likely so uneven a split of the votes for one is if neither is better: the exact sign test, two-sided."""
