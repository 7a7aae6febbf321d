"""How to draw a map."""

from __future__ import annotations

from pydantic import Field

from diptych.service.schemas.sent_document import SentDocument


class MapParameters(SentDocument):
    """How to draw a map of a collection."""

    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """Whose points to show; by default those of the active retriever."""
