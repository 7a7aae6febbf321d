"""One place of the answers in the query log."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class PositionCount(Document):
    """How often a place was shown and clicked."""

    position: int
    """The place, from 1."""
    shown: int
    """How often an answer was shown there."""
    clicked: int
    """In how many searches it was clicked."""
