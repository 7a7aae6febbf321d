"""From a stored item to what clients see of it."""

from __future__ import annotations

from pathlib import PurePath

from diptych.collection import Collection, CollectionError, Item
from diptych.service.problem import Problem
from diptych.service.schemas.item_document import ItemDocument


def item_document(item: Item) -> ItemDocument:
    """Return an item as clients see it; where a file outside the root lies is not their business."""
    is_inside = item.path is not None and not PurePath(item.path).is_absolute()
    return ItemDocument.model_construct(
        id=item.id,
        name=None if item.path is None else PurePath(item.path).name,
        path=item.path if is_inside else None,
        picture=item.path is not None,
        width=item.width,
        height=item.height,
        size=item.size,
        labels=list(item.labels),
        captions=list(item.captions),
        metadata=dict(item.metadata),
        added=item.added,
        updated=item.updated,
        content_hash=item.content_hash,
    )


def find_item(collection: Collection, item_id: str) -> Item:
    """Return the item of an id; paths, which a collection takes as well, are no names here."""
    try:
        item = collection[item_id]
    except CollectionError:
        item = None
    if item is None or item.id != item_id:
        raise Problem(
            404, "no-such-item", f"There is no item {item_id!r} in this collection; take the id of an answer."
        )
    return item
