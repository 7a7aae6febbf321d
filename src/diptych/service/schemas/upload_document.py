"""An uploaded picture, as clients see it."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class UploadDocument(Document):
    """A picture that was sent, to be named in the terms of searches."""

    id: str
    """Its name; whoever knows it can search with it."""
    width: int
    """In pixels, as it is seen."""
    height: int
    """In pixels, as it is seen."""
    expires: str
    """When it is forgotten, ISO 8601."""
