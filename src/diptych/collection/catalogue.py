"""All items, in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from diptych.collection.filter import Filter
from diptych.collection.full_text import FullText
from diptych.collection.item import Item


class Catalogue:
    """The items of a collection by id, in the order of addition, with the look-ups that searching and adding need.

    A catalogue never changes; :meth:`changed` gives the next one.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: dict[str, Item] = {item.id: item for item in items}
        self._matching: dict[Filter, frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self.items)

    def changed(self, put: Iterable[Item] = (), removed: Iterable[str] = ()) -> Catalogue:
        """Return the catalogue with some items new or replaced and others gone."""
        items = dict(self.items)
        for item in put:
            items[item.id] = item
        for item_id in removed:
            items.pop(item_id, None)
        following = Catalogue()
        following.items = items
        return following

    @cached_property
    def by_path(self) -> Mapping[str, Item]:
        """Items by stored path."""
        return {item.path: item for item in self.items.values() if item.path is not None}

    @cached_property
    def by_content(self) -> Mapping[str, list[Item]]:
        """Items by the hash of their file."""
        groups: dict[str, list[Item]] = {}
        for item in self.items.values():
            if item.content_hash is not None:
                groups.setdefault(item.content_hash, []).append(item)
        return groups

    @cached_property
    def captions(self) -> Mapping[str, tuple[Item, str]]:
        """Each caption's item and text, by the id of the caption."""
        return {
            caption_id: (item, text)
            for item in self.items.values()
            for caption_id, text in zip(item.caption_ids, item.captions, strict=True)
        }

    @cached_property
    def caption_list(self) -> list[str]:
        """The ids of all captions, in the order of addition."""
        return list(self.captions)

    @cached_property
    def full_text(self) -> FullText:
        """The captions by their words, in the order of :attr:`caption_list`."""
        return FullText([text for _, text in self.captions.values()])

    @cached_property
    def image_points(self) -> Mapping[str, tuple[str, int]]:
        """What the gallery of pictures holds: content and order, by the id of the item."""
        return {
            item.id: (item.content_hash, item.added_ns) for item in self.items.values() if item.content_hash is not None
        }

    @cached_property
    def text_points(self) -> Mapping[str, tuple[str, int]]:
        """What the gallery of captions holds: content and order, by the id of the caption."""
        return {
            caption_id: (text_hash(text), item.added_ns + place)
            for item in self.items.values()
            for place, (caption_id, text) in enumerate(zip(item.caption_ids, item.captions, strict=True))
        }

    def matching(self, wanted: Filter) -> frozenset[str]:
        """Return the ids of the items that meet a filter."""
        if wanted not in self._matching:
            self._matching[wanted] = frozenset(
                item.id for item in self.items.values() if wanted.matches(partial(value_of, item))
            )
        return self._matching[wanted]


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def value_of(item: Item, field: str) -> Any:
    """Return the value of a filter's field, None when the item has none.

    >>> from diptych.collection.catalogue import value_of
    >>> from diptych.collection.item import Item
    >>> value_of(Item("1", "a/b.jpg", "", metadata={"exif": {"iso": 100}}), "exif.iso")
    100
    """
    plain = field.lower()
    if plain in _FIELDS:
        return _FIELDS[plain](item)
    value: Any = item.metadata
    name = field.removeprefix("meta.")
    if name in item.metadata:
        return item.metadata[name]
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


_FIELDS: dict[str, Callable[[Item], Any]] = {
    "id": lambda item: item.id,
    "path": lambda item: item.path,
    "name": lambda item: None if item.path is None else item.path.rpartition("/")[2],
    "kind": lambda item: "text" if item.path is None else "picture",
    "label": lambda item: item.labels,
    "caption": lambda item: item.captions,
    "width": lambda item: item.width or None,
    "height": lambda item: item.height or None,
    "size": lambda item: None if item.path is None else item.size,
    "added": lambda item: item.added,
    "updated": lambda item: item.updated,
    "modified": lambda item: item.modified or None,
}
