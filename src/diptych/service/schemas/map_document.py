"""A map of a collection."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.map_point import MapPoint


class MapDocument(Document):
    """Pictures and captions in the plane; what lies near each other in the common space lies near each other here."""

    retriever: str
    """The retriever whose space is shown."""
    made: str
    """When the map was made, ISO 8601 in UTC."""
    items_in_map: int
    """How many items it shows."""
    items_total: int
    """How many items the collection has now."""
    stale: bool
    """Whether items were added, changed or removed since."""
    note: str
    """What the map leaves out, in words."""
    points: list[MapPoint]
    """Pictures first, then captions."""
