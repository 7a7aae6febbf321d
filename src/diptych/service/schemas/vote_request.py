"""A vote, as sent."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from diptych.service.clicks.kinds import VoteChoice
from diptych.service.schemas.sent_document import SentDocument


class VoteRequest(SentDocument):
    """Which of two searches a person prefers: one query, asked with two retrievers."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "left": "0123456789abcdef0123456789abcdef",
                    "right": "fedcba9876543210fedcba9876543210",
                    "choice": "left",
                },
            ]
        }
    )

    left: str = Field(min_length=1, max_length=64)
    """The search_id of the answers on the left."""
    right: str = Field(min_length=1, max_length=64)
    """The search_id of the answers on the right."""
    choice: VoteChoice
    """The better one, both if they are equally good, neither if equally bad."""
