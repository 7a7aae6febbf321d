"""A page of items."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.item_document import ItemDocument


class ItemList(Document):
    """Items in the order of their addition."""

    items: list[ItemDocument]
    """The items of this page."""
    total: int
    """How many meet the filter."""
    next_offset: int | None
    """Where the next page begins; null when there is none."""
