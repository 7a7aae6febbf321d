"""Work that needs no telling how."""

from __future__ import annotations

from diptych.service.schemas.sent_document import SentDocument


class NoParameters(SentDocument):
    """There is nothing to choose."""
