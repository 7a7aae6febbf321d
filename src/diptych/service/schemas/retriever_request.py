"""A retriever, as asked for."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document


class RetrieverRequest(Document):
    """Which retriever is to be added."""

    name: Literal["default", "conse"]
    """One that needs no training."""
