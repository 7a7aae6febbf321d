"""The retrievers of a collection."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.retriever_document import RetrieverDocument


class RetrieverList(Document):
    """The retrievers of a collection, the active one first."""

    retrievers: list[RetrieverDocument]
    """Those that can be searched with."""
    available: list[str]
    """Those that can be added by name."""
