"""A suggestion, as clients see it."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document


class SuggestionDocument(Document):
    """A query that one may have in mind."""

    text: str
    """The whole query."""
    kind: Literal["label", "caption", "query"]
    """Where it comes from."""
    count: int
    """How often it occurs there."""
