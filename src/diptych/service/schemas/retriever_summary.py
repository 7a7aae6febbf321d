"""A retriever in a few words."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class RetrieverSummary(Document):
    """Which retriever made an answer."""

    name: str
    """What people call it."""
    fingerprint: str
    """A digest of everything that shapes its points."""
