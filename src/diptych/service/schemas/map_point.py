"""One point of a map."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document


class MapPoint(Document):
    """A picture or a text in the plane."""

    x: float
    """From 0 to 1."""
    y: float
    """From 0 to 1."""
    kind: Literal["image", "text"]
    """Whether it is a picture or a caption."""
    id: str
    """The id of the item."""
    caption_id: str | None = None
    """The id of the caption."""
    label: str | None = None
    """The first label of the item."""
    text: str | None = None
    """The caption, cut where it is long."""
