"""A collection, as clients see it."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document
from diptych.service.schemas.retriever_summary import RetrieverSummary


class CollectionDocument(Document):
    """A collection: what is in it, and how it is searched."""

    name: str
    """The name that addresses call it by."""
    items: int
    """Pictures and texts."""
    pictures: int
    """Items with a picture."""
    captions: int
    """Texts that can be found."""
    retriever: RetrieverSummary
    """The retriever that searches use when none is named."""
    stale: bool
    """Whether a change of retriever is unfinished; a job of kind reencode finishes it."""
    pending: str | None
    """The retriever that is to take over."""
    unsearchable: int
    """Pictures without a point, because they could not be read."""
    store_bytes: int
    """What the store takes on the disk."""
    index_bytes: int
    """What the search indexes take on the disk."""
    cutoff: float
    """The probability of relevance from which an answer is a good match."""
    log_clicks: bool
    """Whether searches and clicks are remembered."""
    read_only: bool
    """Whether every write is refused."""
    hybrid_available: bool
    """Whether there are captions to compare words with."""
    map: Literal["ready", "none"]
    """Whether a map of the collection has been made."""
    updated: str | None
    """When an item was last added or changed, ISO 8601; null while there is none."""
