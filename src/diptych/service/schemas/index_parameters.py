"""How to bring a collection up to date."""

from __future__ import annotations

from diptych.service.schemas.sent_document import SentDocument


class IndexParameters(SentDocument):
    """How to bring a collection up to date."""

    remove_missing: bool = True
    """Whether to remove items whose files are gone."""
