"""A retriever, as asked for."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.sent_document import SentDocument


class RetrieverRequest(SentDocument):
    """Which retriever is to be added."""

    name: Literal["default", "conse"]
    """One that needs no training."""
