"""Work that needs no telling how."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class NoParameters(Document):
    """There is nothing to choose."""
