"""The facets of a collection."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.facet_document import FacetDocument


class FacetList(Document):
    """Fields to narrow a search down by."""

    facets: list[FacetDocument]
