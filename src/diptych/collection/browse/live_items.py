"""All items of a collection at one moment, over the segments that hold them."""

from __future__ import annotations

import hashlib
import heapq
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from cachetools import LRUCache

from diptych.arrays import AnyArray, BoolArray, IntArray
from diptych.collection.browse.columns import Columns, column_name
from diptych.collection.browse.facets import Facet, facet_of
from diptych.collection.browse.filter import Filter, filter_name
from diptych.collection.browse.segment import Key, Segment
from diptych.collection.browse.suggestions import Suggestion, suggestions
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.retriever_protocol import Side
from diptych.errors import CollectionError, UnknownItemError

_LISTS = ("labels", "captions", "caption_ids")
_REMEMBERED = 64
_MOST_FIELDS = 50
# As many values as pictures: a time line and a map show them.
_NO_FACETS = ("taken", "latitude", "longitude", "altitude")
# Fields of photographs that few people choose by.
_TECHNICAL = ("aperture", "exposure", "focal_length", "iso", "orientation", "taken_from")


@dataclass(frozen=True)
class Part:
    """A segment, and which of its items are still what it says; None where all are."""

    segment: Segment
    live: BoolArray | None = None

    def __len__(self) -> int:
        return self._n_live

    @cached_property
    def _n_live(self) -> int:
        return len(self.segment) if self.live is None else int(np.count_nonzero(self.live))

    def is_live(self, place: int) -> bool:
        """Return True if the item at a place is there."""
        return self.live is None or bool(self.live[place])

    def n_live(self, owners: IntArray) -> int:
        """Return how many of some entries belong to live items."""
        return len(owners) if self.live is None else int(np.count_nonzero(self.live[owners]))

    def without(self, orders: IntArray) -> Part:
        """Return the part without some items, named by their time of addition."""
        places = self.segment.places(orders)[0]
        if not len(places):
            return self
        live = np.ones(len(self.segment), dtype=bool) if self.live is None else self.live.copy()
        live[places] = False
        return Part(self.segment, live)

    def items(self) -> Iterator[Item]:
        """Yield the live items in the order of addition."""
        every = self.segment.items()
        return every if self.live is None else compress(every, self.live)

    def column(self, name: str) -> Any:
        """Return what the live items have under one name of the store's columns."""
        every = self.segment.column(name)
        return every if self.live is None else every.filter(search_package("pyarrow").array(self.live))

    def places(self) -> IntArray:
        """Return the places of the live items."""
        return np.arange(len(self.segment)) if self.live is None else np.flatnonzero(self.live)

    def chosen(self, mask: BoolArray | None) -> BoolArray | None:
        """Return which items of a choice are live; None stands for all."""
        if mask is None:
            return self.live
        return mask if self.live is None else mask & self.live


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def text_item_id(texts: tuple[str, ...], known: Callable[[str], Item | None]) -> str:
    """Return the id of a text: the same for the same text, unless its item has been given other captions since."""
    digest = hashlib.sha256("\0".join(texts).encode())
    while True:
        name = digest.hexdigest()[:16]
        item = known(name)
        if item is None or item.captions == texts:
            return name
        digest.update(b"\0")


def text_hashes(texts: Any) -> list[str]:
    """Return the SHA-256 of each text of a column."""
    sha256 = hashlib.sha256
    return [sha256(text).hexdigest() for text in texts.cast(search_package("pyarrow").binary()).to_pylist()]


@dataclass(frozen=True)
class LiveItems:
    """The items of some parts; what a filter or a count found is remembered, since it cannot change."""

    parts: tuple[Part, ...] = ()
    newest_ns: int = 0
    # Eight to the byte: a filter among millions of items would take megabytes.
    _matching: LRUCache[Filter, list[AnyArray]] = field(default_factory=lambda: LRUCache(_REMEMBERED), repr=False)
    _facets: LRUCache[tuple[Filter | None, int], list[Facet]] = field(
        default_factory=lambda: LRUCache(_REMEMBERED), repr=False
    )

    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Item]:
        """Yield all items in the order of addition."""
        return heapq.merge(*(part.items() for part in self.parts), key=lambda item: item.added_ns)

    def find(self, kind: Key, key: str) -> list[Item]:
        """Return the items with this id, path, content or caption."""
        return [
            part.segment.item(place)
            for part in self.parts
            for place in part.segment.find(kind, key)
            if part.is_live(place)
        ]

    def get(self, item_id: str) -> Item | None:
        """Return an item by its id."""
        return next(iter(self.find("id", item_id)), None)

    def at_path(self, stored: str) -> Item | None:
        """Return the item of a stored path."""
        return next(iter(self.find("path", stored)), None)

    @cached_property
    def n_pictures(self) -> int:
        """How many items have a picture."""
        return sum(part.n_live(part.segment.picture_owners) for part in self.parts)

    @cached_property
    def n_captions(self) -> int:
        """How many captions the items have."""
        return sum(part.n_live(part.segment.caption_owners) for part in self.parts)

    def column(self, name: str) -> Any:
        """Return what all items have under one name of the store's columns, the values of lists one by one."""
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        chunks = [chunk for part in self.parts for chunk in part.column(name).chunks]
        chunks = [pc.list_flatten(chunk) for chunk in chunks] if name in _LISTS else chunks
        return pa.chunked_array(chunks, "string")

    def hashes(self, side: Side) -> Any:
        """Return what the point of each picture or caption is stored under."""
        if side == "image":
            return self.column("content_hash").drop_null()
        return search_package("pyarrow").array(text_hashes(self.column("captions")), "string")

    def contents(self, side: Side) -> dict[str, str]:
        """Return what the points of a side are made of, by the hash they are stored under: a path or the text."""
        if side == "text":
            return {text_hash(text): text for text in self.column("captions").to_pylist()}
        contents: dict[str, str] = {}
        for content, path in zip(*(self.column(name).to_pylist() for name in ("content_hash", "path")), strict=True):
            if content is not None:
                contents.setdefault(content, path)
        return contents

    def contents_of(self, side: Side, ids: Sequence[str] | None) -> dict[str, str]:
        """Return what the points of items or captions are stored under, by id; of all, or of some."""
        if ids is None:
            found = list(self)
        else:
            found = []
            for one in ids:
                held = self.find("id" if side == "image" else "caption", one)
                if not held:
                    what, error = ("item", UnknownItemError) if side == "image" else ("caption", CollectionError)
                    raise error(f"there is no {what} {one!r} in the collection; take the id of an answer")
                found.append(held[0])
        if side == "image":
            return {item.id: item.content_hash for item in found if item.content_hash is not None}
        contents = {
            caption_id: text_hash(text)
            for item in found
            for caption_id, text in zip(item.caption_ids, item.captions, strict=True)
        }
        return contents if ids is None else {one: contents[one] for one in ids}

    def with_paths(self, is_wanted: Callable[[str], bool]) -> list[Item]:
        """Return the items whose stored path is wanted, in the order of addition."""
        found = [
            part.segment.item(place)
            for part in self.parts
            for place, path in zip(part.places().tolist(), part.column("path").to_pylist(), strict=True)
            if path is not None and is_wanted(path)
        ]
        return sorted(found, key=lambda item: item.added_ns)

    def masks(self, wanted: Filter) -> list[BoolArray]:
        """Return which live items of each part meet a filter."""
        with self._lock:
            packed = self._matching.get(wanted)
        if packed is None:
            found = ((part, part.segment.columns.matching(wanted, len(part.segment))) for part in self.parts)
            masks = [mask if part.live is None else mask & part.live for part, mask in found]
            with self._lock:
                self._matching[wanted] = [np.packbits(mask) for mask in masks]
            return masks
        pairs = zip(packed, self.parts, strict=True)
        return [np.unpackbits(bits, count=len(part.segment)).view(bool) for bits, part in pairs]

    def matching(self, wanted: Filter) -> list[Item]:
        """Return the items that meet a filter, in the order of addition."""
        pairs = zip(self.parts, self.masks(wanted), strict=True)
        found = [item for part, mask in pairs for item in part.segment.items_at(np.flatnonzero(mask).tolist())]
        return sorted(found, key=lambda item: item.added_ns)

    def facets(self, wanted: Filter | None, limit: int) -> list[Facet]:
        """Return the facets of the items that meet a filter, or of all."""
        with self._lock:
            counted = self._facets.get((wanted, limit))
        if counted is None:
            masks: Sequence[BoolArray | None] = (
                [part.live for part in self.parts] if wanted is None else self.masks(wanted)
            )
            counts = self._field_counts
            widest = sorted(counts.keys() - _NO_FACETS, key=lambda name: (-counts[name], name))[:_MOST_FIELDS]
            widest.sort(key=_TECHNICAL.__contains__)
            names = [("label", "=label"), *((filter_name(name), f".{name}") for name in widest)]
            facets = (self._facet(title, name, masks, limit) for title, name in names)
            counted = [facet for facet in facets if facet is not None]
            with self._lock:
                self._facets[wanted, limit] = counted
        return list(counted)

    def parts_to_count(self, wanted: Filter | None) -> list[tuple[Columns, int, BoolArray | None]]:
        """Return the columns of each part, their length, and which items to count among: those that meet a filter."""
        masks: Sequence[BoolArray | None] = [part.live for part in self.parts] if wanted is None else self.masks(wanted)
        segments = [part.segment for part in self.parts]
        return [(one.columns, len(one), mask) for one, mask in zip(segments, masks, strict=True)]

    def _facet(self, title: str, name: str, masks: Sequence[BoolArray | None], limit: int) -> Facet | None:
        columns = [
            (part.segment.columns[name], part.live, mask)
            for part, mask in zip(self.parts, masks, strict=True)
            if name in part.segment.columns
        ]
        return facet_of(title, columns, limit) if columns else None

    def suggestions(self, prefix: str, limit: int) -> list[Suggestion]:
        """Return ways to go on with a query."""
        return suggestions([part.segment.suggestions for part in self.parts], prefix, limit)

    @cached_property
    def _field_counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for part in self.parts:
            columns = part.segment.columns
            counts.update({name: columns.n_entries(f".{name}") for name in columns.metadata})
        return counts

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the metadata, as filters use them, the most frequent first."""
        return tuple(
            filter_name(name)
            for name, _ in self._field_counts.most_common(_MOST_FIELDS)
            if self.has_field(f"meta.{name}")
        )

    def has_field(self, name: str) -> bool:
        """Return True if some item has a value for a filter's field."""
        column = column_name(name)
        for part in self.parts:
            if column in part.segment.columns and part.n_live(part.segment.columns[column].owners):
                return True
        return False
