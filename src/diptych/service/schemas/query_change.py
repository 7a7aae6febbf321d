"""What a change of retriever did to a query."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class QueryChange(Document):
    """A query that was kept back, and how well it was answered before and after."""

    query: str
    """What people asked."""
    before: float
    """The measure with the retriever in force."""
    after: float
    """The measure with the one that was learned."""
