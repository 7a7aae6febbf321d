"""One day of the query log."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class DayCount(Document):
    """How much was asked and clicked on one day."""

    day: str
    """The date, ISO 8601, by the calendar of the service."""
    searches: int
    """How many searches."""
    clicks: int
    """How many clicks."""
