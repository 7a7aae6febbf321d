"""An item, as clients see it."""

from __future__ import annotations

from typing import Any

from diptych.service.schemas.document import Document


class ItemDocument(Document):
    """A stored picture or text."""

    id: str
    """Its name in addresses."""
    name: str | None
    """The name of the file, without its folder."""
    path: str | None
    """The file, from the root of the collection; null without one and for a file elsewhere."""
    picture: bool
    """Whether it has a picture."""
    width: int
    """Of the picture, in pixels; 0 without one."""
    height: int
    """Of the picture, in pixels; 0 without one."""
    size: int
    """Of the file, in bytes; 0 without one."""
    labels: list[str]
    """What it shows."""
    captions: list[str]
    """What is said of it, or the text itself."""
    metadata: dict[str, Any]
    """What else is known of it."""
    added: str
    """When it was added, ISO 8601."""
    updated: str
    """When it was last changed, ISO 8601."""
    content_hash: str | None
    """The SHA-256 of the picture file."""
