"""The parameters of learning from clicks."""

from __future__ import annotations

from pydantic import Field

from diptych.service.schemas.sent_document import SentDocument


class LearnParameters(SentDocument):
    """How to learn from what people clicked."""

    held_out: float = Field(default=0.2, ge=0.05, le=0.5)
    """The share of queries kept back for the comparison with the present retriever."""
    alpha: float = Field(default=0.01, ge=0.0001, le=0.5)
    """How small p must be for the new retriever to take over."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Of the draw of that share."""
    dry_run: bool = False
    """Compare only; change nothing."""
