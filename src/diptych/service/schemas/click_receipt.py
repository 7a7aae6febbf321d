"""The acknowledgement of a click."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class ClickReceipt(Document):
    """The click is on the disk."""

    id: int
    """Its number in the log."""
