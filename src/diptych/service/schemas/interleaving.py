"""Two retrievers compared over REST: interleaved on live traffic, and by votes on answers side by side."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.clicks.records import VoteChoice
from diptych.service.schemas import Document, RequestDocument, with_examples
from diptych.service.schemas.retrievers import Fingerprint


class InterleavingRequest(RequestDocument):
    """Two search models of the collection."""

    model_config = with_examples({"a": "default", "b": "learned"})

    a: str = Field(min_length=1, max_length=200)
    b: str = Field(min_length=1, max_length=200)


class InterleavingDocument(Document):
    """Two search models that answered the same searches together, and whose answers were clicked."""

    a: str
    a_fingerprint: Fingerprint
    b: str
    b_fingerprint: Fingerprint
    state: Literal["running", "waiting", "stopped"]
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


class InterleavingList(Document):
    """Each two search models that were interleaved."""

    interleavings: list[InterleavingDocument]
    """The latest first; at most that one runs."""


class VoteRequest(RequestDocument):
    """Which of two searches a person prefers: one query, asked with two search models."""

    model_config = with_examples(
        {"left": "0123456789abcdef0123456789abcdef", "right": "fedcba9876543210fedcba9876543210", "choice": "left"}
    )

    left: str = Field(min_length=1, max_length=64)
    """The search_id of the answers on the left."""
    right: str = Field(min_length=1, max_length=64)
    """The search_id of the answers on the right."""
    choice: VoteChoice
    """The better one, both if they are equally good, neither if equally bad."""


class VoteReceipt(Document):
    """The vote is on the disk."""

    id: int
    """Its number in the log."""


class VotePairDocument(Document):
    """How often each of two search models was preferred, whichever side it was shown on."""

    left: str
    left_fingerprint: Fingerprint
    right: str
    right_fingerprint: Fingerprint
    left_wins: int
    right_wins: int
    both: int
    """Votes that found both good."""
    neither: int
    """Votes that found neither good."""
    p_value: float
    """How likely so uneven a split of the votes for one is if neither is better: the exact sign test, two-sided."""


class VoteList(Document):
    """The votes on each two search models that were compared."""

    pairs: list[VotePairDocument]
    """In the order of the names."""
