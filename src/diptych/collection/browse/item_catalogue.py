"""All items of a collection in memory, with the words of their captions."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, cast

import numpy as np
from scipy.sparse import csc_matrix

from diptych.arrays import FloatArray
from diptych.collection.browse.facets import Facet, Facets
from diptych.collection.browse.filter import Filter, filter_name
from diptych.collection.storage.item import Item
from diptych.collection.storage.retriever_protocol import Side

_WORD = re.compile(r"\w+")


class FullText:
    """BM25 over the captions of a collection, without case and accents.

    A caption of length l that holds a word f times gains idf·f(k₁ + 1)/(f + k₁(1 − b + b·l/l̄)) for each word asked,
    with idf = log(1 + (N − n + ½)/(n + ½)), k₁ = 1.2 and b = 0.75.
    Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond", 2009.

    >>> FullText(["a red boat", "a blue boat", "a cat"]).scores("Red boat").argsort()[::-1].tolist()[:2]
    [0, 1]
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(words_of(text)) for text in texts]
        self._columns: dict[str, int] = {}
        for word in chain.from_iterable(counts):
            self._columns.setdefault(word, len(self._columns))
        rows = np.repeat(np.arange(len(texts)), [len(count) for count in counts])
        columns = np.array([self._columns[word] for count in counts for word in count], dtype=np.int64)
        frequencies = np.array([number for count in counts for number in count.values()], dtype=np.float64)
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        mean = lengths.mean() if lengths.sum() else 1.0
        holders = np.bincount(columns, minlength=len(self._columns))
        rarity = np.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
        saturated = frequencies * (k1 + 1) / (frequencies + k1 * (1 - b + b * lengths[rows] / mean))
        self._gains = csc_matrix((rarity[columns] * saturated, (rows, columns)), (len(texts), len(self._columns)))

    def scores(self, words: str) -> FloatArray:
        """Return the gain of every caption; 0 for one without any of the words."""
        asked = Counter(word for word in words_of(words) if word in self._columns)
        total = np.zeros(self._gains.shape[0])
        for word, times in asked.items():
            column = self._columns[word]
            holders = slice(self._gains.indptr[column], self._gains.indptr[column + 1])
            total[self._gains.indices[holders]] += times * self._gains.data[holders]
        return total


def words_of(text: str) -> list[str]:
    """Return the words of a text without case and accents.

    >>> words_of("Ein Café, 2 Boote")
    ['ein', 'cafe', '2', 'boote']
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(letter for letter in decomposed if not unicodedata.combining(letter)))


_REMEMBERED_FILTERS = 64
# The ids in all remembered filters together, some tens of megabytes.
_REMEMBERED_IDS = 1_000_000


class Catalogue:
    """The items of a collection by id, in the order of addition, with look-ups; `changed` gives the next catalogue."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: dict[str, Item] = {item.id: item for item in items}
        self._matching: dict[Filter, frozenset[str]] = {}
        self._known_fields: dict[str, bool] = {}
        self._counted: dict[tuple[Filter | None, int], list[Facet]] = {}

    def __len__(self) -> int:
        return len(self.items)

    def changed(self, put: Iterable[Item] = (), removed: Iterable[str] = ()) -> Catalogue:
        """Return the catalogue with some items new or replaced and others gone."""
        new = {item.id: item for item in put}
        gone = [item_id for item_id in removed if item_id in self.items]
        following = Catalogue()
        following.items = {**self.items, **new}
        for item_id in gone:
            following.items.pop(item_id, None)
        replaced = [self.items[item_id] for item_id in (*new, *gone) if item_id in self.items]
        following._inherit(self, replaced, [item for item_id, item in new.items() if item_id in following.items])
        return following

    def _inherit(self, before: Catalogue, gone: Iterable[Item], new: Iterable[Item]) -> None:
        """Take over the look-ups that were made before, changed where the items have; making them anew takes longer."""
        if "by_path" in vars(before):
            paths = dict(before.by_path)
            for item in gone:
                if item.path is not None and paths.get(item.path) is item:
                    del paths[item.path]
            paths.update({item.path: item for item in new if item.path is not None})
            self.by_path = paths
        if "captions" in vars(before):
            captions = dict(before.captions)
            for item in gone:
                for caption_id in item.caption_ids:
                    captions.pop(caption_id, None)
            captions.update(_captions_of(new))
            self.captions = captions

    @cached_property
    def by_path(self) -> Mapping[str, Item]:
        """Items by stored path."""
        return {item.path: item for item in self.items.values() if item.path is not None}

    @cached_property
    def n_pictures(self) -> int:
        """How many items have a picture."""
        return sum(item.path is not None for item in self.items.values())

    @cached_property
    def newest_ns(self) -> int:
        """When an item was last added or changed, 0 without items."""
        return max((item.updated_ns for item in self.items.values()), default=0)

    @cached_property
    def by_content(self) -> Mapping[str, list[Item]]:
        """Items by the hash of their file."""
        groups: dict[str, list[Item]] = {}
        for item in self.items.values():
            if item.content_hash is not None:
                groups.setdefault(item.content_hash, []).append(item)
        return groups

    @cached_property
    def by_text(self) -> Mapping[str, str]:
        """The different texts of captions by their hashes."""
        return {text_hash(text): text for _, text in self.captions.values()}

    def contents(self, side: Side) -> Mapping[str, object]:
        """What the points of a side are made of, by the hash that they are stored under."""
        return self.by_content if side == "image" else self.by_text

    @cached_property
    def captions(self) -> Mapping[str, tuple[Item, str]]:
        """Each caption's item and text, by the id of the caption."""
        return _captions_of(self.items.values())

    @cached_property
    def caption_list(self) -> list[str]:
        """The ids of all captions, in the order of addition."""
        return list(self.captions)

    @cached_property
    def full_text(self) -> FullText:
        """The captions by their words, in the order of :attr:`caption_list`."""
        return FullText([text for _, text in self.captions.values()])

    def facets(self, wanted: Filter | None, limit: int) -> list[Facet]:
        """Return the facets of the items that meet a filter, or of all."""
        # Other threads may make room at any moment, so what was found is held and not looked up again.
        counted = self._counted.get((wanted, limit))
        if counted is None:
            counted = self._facets.among(None if wanted is None else self.matching(wanted), limit)
            if len(self._counted) >= _REMEMBERED_FILTERS:
                self._counted.clear()
            self._counted[wanted, limit] = counted
        return list(counted)

    @cached_property
    def _facets(self) -> Facets:
        return Facets(self.items.values())

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the metadata at the top level, as filters use them, the most frequent first."""
        names = Counter(name for item in self.items.values() for name in item.metadata)
        return tuple(filter_name(name) for name, _ in names.most_common())

    def has_field(self, field: str) -> bool:
        """Say whether some item has a value for a filter's field."""
        known = self._known_fields.get(field)
        if known is None:
            known = any(value_of(item, field) is not None for item in self.items.values())
            if len(self._known_fields) >= _REMEMBERED_FILTERS:
                self._known_fields.clear()
            self._known_fields[field] = known
        return known

    def matching(self, wanted: Filter) -> frozenset[str]:
        """Return the ids of the items that meet a filter."""
        matching = self._matching.get(wanted)
        if matching is None:
            matching = frozenset(item.id for item in self.items.values() if wanted.matches(partial(value_of, item)))
            remembered = len(matching) + sum(len(ids) for ids in list(self._matching.values()))
            if len(self._matching) >= _REMEMBERED_FILTERS or remembered > _REMEMBERED_IDS:
                self._matching.clear()
            self._matching[wanted] = matching
        return matching


def _captions_of(items: Iterable[Item]) -> dict[str, tuple[Item, str]]:
    return {
        caption_id: (item, text)
        for item in items
        for caption_id, text in zip(item.caption_ids, item.captions, strict=True)
    }


def image_points(items: Iterable[Item]) -> dict[str, tuple[str, int]]:
    """Return what the gallery of pictures holds of items: content and order, by the id of the item."""
    return {item.id: (item.content_hash, item.added_ns) for item in items if item.content_hash is not None}


def text_points(items: Iterable[Item]) -> dict[str, tuple[str, int]]:
    """Return what the gallery of captions holds of items: content and order, by the id of the caption."""
    return {
        caption_id: (text_hash(text), item.added_ns + place)
        for item in items
        for place, (caption_id, text) in enumerate(zip(item.caption_ids, item.captions, strict=True))
    }


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def value_of(item: Item, field: str) -> Any:
    """Return the value of a filter's field, None when the item has none.

    >>> value_of(Item("1", "a/b.jpg", "", metadata={"exif": {"iso": 100}}), "exif.iso")
    100
    """
    plain = field.lower()
    if plain in _FIELDS:
        return _FIELDS[plain](item)
    name, value = field.removeprefix("meta."), cast(Any, item.metadata)
    if name in value:
        return value[name]
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
