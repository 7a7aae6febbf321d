"""One query of the query log."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.visible_words import VisibleWords


class QueryCount(Document):
    """How often a query was asked, and how well it did."""

    query: str
    """The query, in lower case."""
    searches: int
    """How often it was asked."""
    clicked_share: float
    """The share of these searches in which something was clicked."""
    last: str
    """When it was asked last, ISO 8601."""
    no_good_match: bool
    """Whether none of these searches had a good match."""
    visualness: float | None
    """The share of its words that name something visible, 0 to 1; null where that is not known."""
    visible: list[VisibleWords]
    """These names, from left to right."""
