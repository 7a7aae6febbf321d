"""A facet, as clients see it."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document
from diptych.service.schemas.facet_value_document import FacetValueDocument


class FacetDocument(Document):
    """A field to narrow a search down by."""

    field: str
    """The name that filters use."""
    kind: Literal["values", "range"]
    """Whether it has a few values or a range of numbers."""
    values: list[FacetValueDocument]
    """The most frequent values."""
    minimum: float | None
    """The least number of a range."""
    maximum: float | None
    """The largest number of a range."""
