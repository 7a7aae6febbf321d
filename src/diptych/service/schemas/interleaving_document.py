"""What clicks say of two retrievers."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document

InterleavingState = Literal["running", "waiting", "stopped"]


class InterleavingDocument(Document):
    """Two retrievers that answered the same searches together, and whose answers were clicked."""

    a: str
    """The name of one retriever."""
    a_fingerprint: str
    """Which state of it."""
    b: str
    """The name of the other."""
    b_fingerprint: str
    """Which state of it."""
    state: InterleavingState
    """Whether both answer now; waiting means that one of them is no longer there as it was, so neither does."""
    started: str
    """Since when, ISO 8601."""
    stopped: str | None
    """Until when; null while it goes on."""
    searches: int
    """How many searches both answered."""
    clicks_a: int
    """Clicked answers that the one picked."""
    clicks_b: int
    """Clicked answers that the other picked."""
    wins_a: int
    """Searches in which more of the one's answers were clicked."""
    wins_b: int
    """Searches in which more of the other's were."""
    ties: int
    """Searches in which as many were, and any at all."""
    p_value: float
    """How likely so uneven a split of the wins is if neither is better: the exact sign test, two-sided."""
