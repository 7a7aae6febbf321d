"""The acknowledgement of a vote."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class VoteReceipt(Document):
    """The vote is on the disk."""

    id: int
    """Its number in the log."""
