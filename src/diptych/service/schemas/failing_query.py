"""One query that finds nothing."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document
from diptych.service.schemas.visible_words import VisibleWords


class FailingQuery(Document):
    """A query that people ask in vain."""

    query: str
    """The query, in lower case."""
    searches: int
    """How often it was asked."""
    reason: Literal["no good match", "never clicked"]
    """Why it is listed: nothing reached the cut-off, or nobody used an answer though it was asked often."""
    last: str
    """When it was asked last, ISO 8601."""
    visualness: float | None
    """The share of its words that name something visible, 0 to 1; null where that is not known."""
    visible: list[VisibleWords]
    """These names, from left to right."""
