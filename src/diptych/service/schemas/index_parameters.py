"""How to bring a collection up to date."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class IndexParameters(Document):
    """How to bring a collection up to date."""

    remove_missing: bool = True
    """Whether to remove items whose files are gone."""
