"""Segments: immutable sets of items, one in memory for the latest changes, the others in files that processes share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray, IntArray
from diptych.atomic_files import read_json, write_json
from diptych.collection.browse.columns import Columns, ColumnsBuilder, Values
from diptych.collection.browse.suggestions import SuggestionCounts, SuggestionIndex
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.rows import item_rows, items_of_rows
from diptych.collection.storage.word_index import WordHits
from diptych.errors import CollectionError

Key = Literal["id", "path", "content", "caption"]
KEYS: tuple[Key, ...] = ("id", "path", "content", "caption")
_KEY_COLUMNS = {"id": "id", "path": "path", "content": "content_hash", "caption": "caption_ids"}
_ROWS_AT_ONCE = 1 << 14
_FORMAT = 4


def keys_of(item: Item, kind: Key) -> Sequence[str]:
    """Return what an item is looked up by."""
    if kind == "caption":
        return item.caption_ids
    one = {"id": item.id, "path": item.path, "content": item.content_hash}[kind]
    return () if one is None else (one,)


class Segment(ABC):
    """Items in the order of addition; ``orders`` are the times of it, which name an item for ever."""

    orders: IntArray

    def __len__(self) -> int:
        return len(self.orders)

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The fields that filters and facets use."""

    def item(self, place: int) -> Item:
        """Return the item at a place."""
        return self.items_at([place])[0]

    @abstractmethod
    def items_at(self, places: Sequence[int]) -> list[Item]:
        """Return the items at some places."""

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """Yield all items, one batch after the other in memory."""

    @abstractmethod
    def rows(self, places: IntArray) -> Any:
        """Return the items at some places, which are in order, as a batch of rows."""

    def names(self, places: IntArray, captions: IntArray | None = None) -> AnyArray:
        """Return the ids of the items at some places, or of one caption of each."""
        return self._texts("id" if captions is None else "caption_ids", places, captions)

    def contents(self, places: IntArray, captions: IntArray | None = None) -> AnyArray:
        """Return the digests of the pictures at some places, or the text of one caption of each."""
        return self._texts("content_hash" if captions is None else "captions", places, captions)

    @abstractmethod
    def _texts(self, column: str, places: IntArray, captions: IntArray | None) -> AnyArray:
        """Return what items have under a name of the store's columns, or what one caption of each has."""

    @abstractmethod
    def column(self, name: str) -> Any:
        """Return what all items have under one name of the store's columns."""

    @property
    @abstractmethod
    def suggestions(self) -> SuggestionIndex:
        """Words and phrases of all items, those that are no longer live included."""

    @property
    def picture_owners(self) -> IntArray:
        """The places of the items that have a picture."""
        return self.columns["=path"].owners if "=path" in self.columns else np.zeros(0, dtype=np.int32)

    @property
    @abstractmethod
    def caption_owners(self) -> IntArray:
        """The place of the item of each caption, in any order."""

    @abstractmethod
    def find(self, kind: Key, key: str) -> list[int]:
        """Return the places of the items with this key."""

    @abstractmethod
    def captions(self, ids: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return the places of the items with these captions, −1 for none, and those of the captions in them."""

    def holders(self, hits: WordHits) -> tuple[IntArray, IntArray]:
        """Return the places of the items that words lead to, and the number of the hit that leads to each."""
        if hits.holder == "item":
            return self.places(np.array(hits.keys, dtype=np.int64))
        found = [self.find("content", key) for key in hits.keys]
        which = np.repeat(np.arange(len(found)), [len(places) for places in found])
        return np.array([place for places in found for place in places], dtype=np.int64), which

    def places(self, orders: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places of those of the orders that are here, and which these are."""
        places = np.searchsorted(self.orders, orders)
        which = np.flatnonzero(places < len(self))
        which = which[self.orders[places[which]] == orders[which]]
        return places[which], which


class MemorySegment(Segment):
    """A few items that no file holds yet."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = sorted(items, key=lambda item: item.added_ns)
        self.orders = np.array([item.added_ns for item in self._items], dtype=np.int64)
        self._places: dict[Key, dict[str, list[int]]] = {}

    @cached_property
    def columns(self) -> Columns:
        """The fields that filters and facets use."""
        builder = ColumnsBuilder()
        builder.add(self._rows)
        return builder.build()

    @cached_property
    def _rows(self) -> Any:
        return item_rows(self._items)

    def rows(self, places: IntArray) -> Any:
        """Return the items at some places as a batch of rows."""
        return item_rows([self._items[place] for place in places.tolist()])

    def _texts(self, column: str, places: IntArray, captions: IntArray | None) -> AnyArray:
        found = [getattr(item, column) for item in self.items_at(places.tolist())]
        whose = [] if captions is None else captions.tolist()
        texts = [texts[place] for texts, place in zip(found, whose, strict=True)] if whose else found
        return np.array(texts, dtype=object)

    def column(self, name: str) -> Any:
        """Return what all items have under one name of the store's columns."""
        return search_package("pyarrow").chunked_array([self._rows[name]])

    @cached_property
    def suggestions(self) -> SuggestionIndex:
        """Words and phrases of all items."""
        counts = SuggestionCounts()
        counts.add(*(self._rows[name].flatten().to_pylist() for name in ("labels", "captions")))
        return counts.index()

    @cached_property
    def caption_owners(self) -> IntArray:
        """The place of the item of each caption."""
        return np.repeat(np.arange(len(self._items)), [len(item.caption_ids) for item in self._items])

    def items_at(self, places: Sequence[int]) -> list[Item]:
        """Return the items at some places."""
        return [self._items[place] for place in places]

    def items(self) -> Iterator[Item]:
        """Yield all items."""
        return iter(self._items)

    def find(self, kind: Key, key: str) -> list[int]:
        """Return the places of the items with this key."""
        if kind not in self._places:
            places: dict[str, list[int]] = {}
            for place, item in enumerate(self._items):
                for one in keys_of(item, kind):
                    places.setdefault(one, []).append(place)
            self._places[kind] = places
        return self._places[kind].get(key, [])

    def captions(self, ids: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return the places of the items with these captions, −1 for none, and those of the captions in them."""
        found = [self._caption_places.get(one, (-1, -1)) for one in ids]
        owners, inner = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return owners, inner

    @cached_property
    def _caption_places(self) -> dict[str, tuple[int, int]]:
        return {
            name: (place, number)
            for place, item in enumerate(self._items)
            for number, name in enumerate(item.caption_ids)
        }


# A key is a number whose digits are its bytes; what is left when these primes divide it tells keys apart.
_PRIMES = (2654435761, 3266489917)


def _key_hash(key: str) -> int:
    number = int.from_bytes(key.encode("utf-8", "surrogatepass"), "little")
    return number % _PRIMES[0] << 32 | number % _PRIMES[1]


def _key_hashes(keys: Any) -> AnyArray:
    """Return the hashes of a column of strings without nulls."""
    ends = np.frombuffer(keys.buffers()[1], dtype=np.int32)[keys.offset :][: len(keys) + 1].astype(np.int64)
    if not len(keys) or ends[0] == ends[-1]:
        return np.zeros(len(keys), dtype=np.uint64)
    digits = np.frombuffer(keys.buffers()[2], dtype=np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    lengths, ends = np.diff(ends), ends - ends[0]
    places = np.arange(len(digits)) - np.repeat(ends[:-1], lengths)
    hashes = np.zeros(len(keys), dtype=np.uint64)
    for prime in _PRIMES:
        weights = np.array([pow(256, place, prime) for place in range(int(lengths.max()))], dtype=np.uint64)
        # Sums may run over, their differences are right all the same.
        sums = np.concatenate([[np.uint64(0)], np.cumsum(digits * weights[places])])
        hashes = hashes << np.uint64(32) | np.diff(sums[ends]) % np.uint64(prime)
    return hashes


_ARRAYS = ("orders", "caption_numbers", "starts", "numbers", "kinds", "owners", "codes")


class FileSegment(Segment):
    """Items in a folder whose files are mapped, so that all processes of a machine share one copy of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            about = read_json(folder / "about.json")
            if about["format"] != _FORMAT:
                raise ValueError(f"format {about['format']}")
            arrays = {name: mapped_array(folder / f"{name}.npy") for name in _ARRAYS}
            self._keys = {
                kind: (mapped_array(folder / f"{kind}_hashes.npy"), mapped_array(folder / f"{kind}_places.npy"))
                for kind in KEYS
            }
            self._batches = _record_batches(folder / "items.arrow")
            self._texts_of: dict[tuple[str, int], tuple[Any, IntArray]] = {}
            values = _record_batches(folder / "values.arrow")[0]
        except (OSError, ValueError, KeyError, IndexError) as problem:
            raise CollectionError(f"{folder} cannot be read ({problem}); delete it, it is made anew") from None
        self.orders = arrays["orders"]
        self._caption_numbers = arrays["caption_numbers"]
        self._columns = Columns(
            about["columns"],
            arrays["starts"],
            Values(values["text"], values["folded"], arrays["numbers"], arrays["kinds"]),
            arrays["owners"],
            arrays["codes"],
        )

    @property
    def columns(self) -> Columns:
        """The fields that filters and facets use."""
        return self._columns

    def items_at(self, places: Sequence[int]) -> list[Item]:
        """Return the items at some places."""
        if not len(places):
            return []
        distinct, which = np.unique(np.asarray(places, dtype=np.int64), return_inverse=True)
        items = items_of_rows(self.rows(distinct).to_pylist())
        return [items[number] for number in which.tolist()]

    def items(self) -> Iterator[Item]:
        """Yield all items."""
        for batch in self._batches:
            yield from items_of_rows(batch.to_pylist())

    def rows(self, places: IntArray) -> Any:
        """Return the items at some places as a batch of rows."""
        pa, numbers = search_package("pyarrow"), places // _ROWS_AT_ONCE
        taken = [
            self._batches[number].take(pa.array(places[numbers == number] % _ROWS_AT_ONCE))
            for number in np.unique(numbers).tolist()
        ]
        return taken[0] if len(taken) == 1 else pa.Table.from_batches(taken).combine_chunks().to_batches()[0]

    def _texts(self, column: str, places: IntArray, captions: IntArray | None) -> AnyArray:
        further = np.zeros_like(places) if captions is None else captions
        pa, names = search_package("pyarrow"), np.empty(len(places), dtype=object)
        numbers, inner = np.divmod(places, _ROWS_AT_ONCE)
        for number in np.unique(numbers).tolist():
            here = np.flatnonzero(numbers == number)
            texts, starts = self._batch_texts(column, number)
            taken = texts.take(pa.array(starts[inner[here]] + further[here]))
            names[here] = taken.to_numpy(zero_copy_only=False)
        return names

    def _batch_texts(self, column: str, number: int) -> tuple[Any, IntArray]:
        """Return a column of a batch, one text after the other, and where those of each item begin."""
        if (column, number) not in self._texts_of:
            values = self._batches[number][column]
            is_list = column in ("caption_ids", "captions")
            starts = values.offsets.to_numpy() if is_list else np.arange(len(values), dtype=np.int32)
            self._texts_of[column, number] = values.values if is_list else values, starts
        return self._texts_of[column, number]

    def column(self, name: str) -> Any:
        """Return what all items have under one name of the store's columns."""
        return search_package("pyarrow").Table.from_batches(self._batches, item_rows([]).schema)[name]

    @cached_property
    def suggestions(self) -> SuggestionIndex:
        """Words and phrases of all items."""
        return SuggestionIndex(_record_batches(self.folder / "suggestions.arrow")[0])

    @property
    def caption_owners(self) -> IntArray:
        """The place of the item of each caption."""
        return self._keys["caption"][1]

    def find(self, kind: Key, key: str) -> list[int]:
        """Return the places of the items with this key."""
        hashes, places = self._keys[kind]
        wanted = np.uint64(_key_hash(key))
        start = int(np.searchsorted(hashes, wanted))
        found = []
        while start < len(hashes) and hashes[start] == wanted:
            place = int(places[start])
            if key in keys_of(self.item(place), kind):
                found.append(place)
            start += 1
        return found

    def captions(self, ids: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return the places of the items with these captions, −1 for none, and those of the captions in them."""
        hashes, places = self._keys["caption"]
        wanted = _key_hashes(search_package("pyarrow").array(ids, "string"))
        if not len(hashes):
            return np.full(len(ids), -1), np.full(len(ids), -1)
        # A thousand at a time come from the store itself: 64 bits tell them apart.
        found = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        is_there = hashes[found] == wanted
        return np.where(is_there, places[found], -1), np.where(is_there, self._caption_numbers[found], -1)


def mapped_array(path: Path) -> AnyArray:
    """Return the array of a file without reading it."""
    # A plain view: the class of mapped arrays makes every look at a few numbers several times as slow.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _record_batches(path: Path) -> list[Any]:
    pa = search_package("pyarrow")
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]


class SegmentWriter:
    """Writes rows of items, which come in the order of addition, into a new folder."""

    def __init__(self, folder: Path) -> None:
        pa = search_package("pyarrow")
        folder.mkdir(parents=True)
        self.folder = folder
        self._file = pa.OSFile(str(folder / "items.arrow"), "wb")
        self._items = pa.ipc.new_file(self._file, item_rows([]).schema)
        self._columns, self._words = ColumnsBuilder(), SuggestionCounts()
        self._orders = [np.zeros(0, dtype=np.int64)]
        self._caption_numbers = [np.zeros(0, dtype=np.int32)]
        self._keys = {kind: [(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32))] for kind in KEYS}
        # Rows that are fewer than a batch, and how many rows are in batches.
        self._held: list[Any] = []
        self._n_written = 0

    def add(self, rows: Any) -> None:
        """Append a batch of rows, as :func:`item_rows` gives it; places are computed with the size of those written."""
        pa = search_package("pyarrow")
        self._held.append(rows)
        while (n_held := sum(map(len, self._held))) >= _ROWS_AT_ONCE:
            whole = pa.Table.from_batches(self._held).combine_chunks().to_batches()[0]
            self._write(whole.slice(0, _ROWS_AT_ONCE))
            self._held = [whole.slice(_ROWS_AT_ONCE)] if n_held > _ROWS_AT_ONCE else []

    def finish(self) -> None:
        """Write what belongs to all rows together."""
        pa = search_package("pyarrow")
        if self._held:
            self._write(pa.Table.from_batches(self._held).combine_chunks().to_batches()[0])
        self._items.close()
        self._file.close()
        for kind, found in self._keys.items():
            hashes, places = map(np.concatenate, zip(*found, strict=True))
            order = np.argsort(hashes, kind="stable")
            np.save(self.folder / f"{kind}_hashes.npy", hashes[order])
            np.save(self.folder / f"{kind}_places.npy", places[order])
            if kind == "caption":
                np.save(self.folder / "caption_numbers.npy", np.concatenate(self._caption_numbers)[order])
        np.save(self.folder / "orders.npy", np.concatenate(self._orders))
        self._words.index().write(self.folder / "suggestions.arrow")
        _write_columns(self.folder, self._columns.build())

    def _write(self, rows: Any) -> None:
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        # Lists begin at their first value, as those of a part of a batch do not.
        rows = rows.take(pa.array(np.arange(len(rows))))
        self._items.write_batch(rows)
        self._columns.add(rows)
        self._words.add(*(rows[name].flatten().to_pylist() for name in ("labels", "captions")))
        for kind, found in self._keys.items():
            column = rows[_KEY_COLUMNS[kind]]
            if kind == "caption":
                owners, column, starts = pc.list_parent_indices(column).to_numpy(), column.flatten(), column.offsets
                numbers = np.arange(len(owners)) - starts.to_numpy()[owners]
                self._caption_numbers.append(numbers.astype(np.int32))
            else:
                owners = np.flatnonzero(column.is_valid())
            found.append((_key_hashes(column.drop_null()), (owners + self._n_written).astype(np.int32)))
        self._orders.append(rows["added_ns"].to_numpy())
        self._n_written += len(rows)


def _write_columns(folder: Path, columns: Columns) -> None:
    pa = search_package("pyarrow")
    values = columns.values
    texts = pa.record_batch({"text": values.text, "folded": values.folded})
    with pa.OSFile(str(folder / "values.arrow"), "wb") as sink, pa.ipc.new_file(sink, texts.schema) as writer:
        writer.write_batch(texts)
    arrays = columns.starts, values.number, values.kind, columns.owners, columns.codes
    for name, content in zip(_ARRAYS[2:], arrays, strict=True):
        np.save(folder / f"{name}.npy", content)
    write_json(folder / "about.json", {"format": _FORMAT, "columns": list(columns.places)})
