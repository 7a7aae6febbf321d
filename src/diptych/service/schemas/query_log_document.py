"""The report on the query log, as clients see it."""

from __future__ import annotations

from diptych.service.schemas.day_count import DayCount
from diptych.service.schemas.document import Document
from diptych.service.schemas.failing_query import FailingQuery
from diptych.service.schemas.position_count import PositionCount
from diptych.service.schemas.query_count import QueryCount
from diptych.service.schemas.visual_searches import VisualSearches


class QueryLogDocument(Document):
    """What was asked, what was clicked, and where the answers failed; a wish for less of an item is no click."""

    log: bool
    """Whether searches and clicks are remembered at all."""
    searches: int
    """How many searches in these days."""
    clicks: int
    """How many clicks in these days."""
    visual: VisualSearches | None
    """How much is asked for what can be seen; null where that is not known, or nothing was asked in words."""
    per_day: list[DayCount]
    """Every day, the oldest first."""
    top: list[QueryCount]
    """The most frequent queries."""
    failing: list[FailingQuery]
    """The most frequent queries that found nothing."""
    positions: list[PositionCount]
    """The first hundred places of the answers."""
