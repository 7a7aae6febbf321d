"""How to learn a retriever."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from diptych.service.schemas.sent_document import SentDocument


class TrainParameters(SentDocument):
    """How to learn a retriever from the collection's captions."""

    method: str | None = Field(default=None, min_length=1, max_length=100)
    """The method; by default the best of a few."""
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    """The parameters of the method."""
    held_out: float = Field(default=0.2, ge=0.05, le=0.9)
    """The share of pictures kept back for the comparison with the present retriever."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Of the draw of that share."""
    force: bool = False
    """Take the new retriever even if it is not better."""
