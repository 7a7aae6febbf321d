"""A value of a facet, as clients see it."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class FacetValueDocument(Document):
    """A value, how many items have it, and the filter that finds them."""

    value: bool | int | float | str
    """The value."""
    count: int
    """How many items have it."""
    filter: str
    """What to send as filter to find those."""
