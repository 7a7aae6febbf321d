"""A retriever of a collection, as clients see it."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document

Explains = Literal["parts", "classes", "labels", "words", "pairs", "none"]


class RetrieverDocument(Document):
    """One of the retrievers of a collection."""

    name: str
    """What searches call it."""
    fingerprint: str
    """A digest of everything that shapes its points."""
    active: bool
    """Whether searches use it unless they name another."""
    ready: bool
    """Whether all its points have been made."""
    missing: int
    """How many pictures and captions have no point."""
    kind: str
    """The class of its model."""
    explains: Explains
    """What it can say about why an answer is there."""
