"""The fields of many items as columns: what filters compare and facets count, without an object per item."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.browse.filter import OWN_FIELDS, STORED_DATE, Filter, given_date, number_of, text_of
from diptych.collection.storage.item import joined_fields
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.rows import json_objects
from diptych.data.photo_facts.places import region_of

# Names of metadata and of what every item has may be equal, so each has its mark.
_OWN, _METADATUM = "=", "."
_DEEPEST = 16
STRING, NUMBER, TRUTH, OTHER = range(4)
_PLAIN: dict[type, int] = {str: STRING, int: NUMBER, float: NUMBER, bool: TRUTH}
_HAS_NUMBER = 4
_LARGEST_WHOLE = 1e15
_TEXTS_AT_ONCE = 1 << 16


def own_columns(rows: Any) -> Iterator[tuple[str, int, Any, IntArray | None]]:
    """Yield what every item has: the marked name, the kind, the texts, and whose they are where it is not one each."""
    pc = search_package("pyarrow.compute")
    yield "=id", STRING, rows["id"], None
    is_picture = _as_array(pc.is_valid(rows["path"]))
    yield "=kind", STRING, pc.if_else(pc.is_valid(rows["path"]), "picture", "text"), None
    pictures = np.flatnonzero(is_picture)
    paths = rows["path"].filter(is_picture)
    yield "=path", STRING, paths, pictures
    yield "=name", STRING, pc.replace_substring_regex(paths, "(?s)^.*/", ""), pictures
    yield "=size", NUMBER, _as_texts(rows["size"].filter(is_picture)), pictures
    yield "=modified", STRING, _times(rows["mtime_ns"].filter(is_picture)), pictures
    for name in ("width", "height"):
        known = _as_array(pc.not_equal(rows[name], 0))
        yield f"={name}", NUMBER, _as_texts(rows[name].filter(known)), np.flatnonzero(known)
    yield "=added", STRING, _times(rows["added_ns"]), None
    yield "=updated", STRING, _times(rows["updated_ns"]), None
    for name, column in (("=label", "labels"), ("=caption", "captions")):
        yield name, STRING, pc.list_flatten(rows[column]), pc.list_parent_indices(rows[column]).to_numpy()


def _as_texts(numbers: Any) -> Any:
    return search_package("pyarrow.compute").cast(numbers, search_package("pyarrow").string())


def _times(nanoseconds: Any) -> Any:
    """Return ISO 8601 in UTC, as :attr:`Item.added` gives it."""
    seconds, which = np.unique(nanoseconds.to_numpy(zero_copy_only=False) // 10**9, return_inverse=True)
    times = np.datetime_as_string(seconds.astype("datetime64[s]")).tolist()
    pa = search_package("pyarrow")
    return pa.array([f"{time}+00:00" for time in times], "string").take(pa.array(which))


def _fields(metadata: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[Any], IntArray]]:
    """Yield the fields of metadata: values and whose they are."""
    held: defaultdict[str, tuple[list[Any], list[int]]] = defaultdict(lambda: ([], []))
    for owner, one in enumerate(metadata):
        for name, value in _nested_fields(one):
            values, owners = held[name]
            values.append(value)
            owners.append(owner)
    yield from ((name, values, np.array(owners)) for name, (values, owners) in held.items())


def _by_type(values: Sequence[Any], owners: IntArray) -> Iterator[tuple[type, Any, IntArray]]:
    """Yield the texts of the values of each type, and whose they are."""
    types = {*map(type, values)}
    for made_of in types:
        if len(types) == 1:
            yield made_of, _texts_of(made_of, values), owners
        else:
            is_chosen = np.fromiter((type(value) is made_of for value in values), dtype=bool, count=len(values))
            yield made_of, _texts_of(made_of, list(compress(values, is_chosen))), owners[is_chosen]


def _texts_of(made_of: type, values: Sequence[Any]) -> Any:
    pa = search_package("pyarrow")
    if made_of in (int, bool):
        with suppress(OverflowError):
            return _as_texts(pa.array(values, pa.int64() if made_of is int else pa.bool_()))
    return _texts(values if made_of is str else [text_of(value) for value in values])


def _nested_fields(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    nested = {name: value for name, value in metadata.items() if isinstance(value, Mapping)}
    inner = dict(_inner_fields(nested, "", 1)) if nested else {}
    # A name with dots at the top stands for itself before it stands for a place inside another one.
    for name, value in {**inner, **metadata}.items():
        for one in _each(value):
            yield name, one


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _each(one)
    elif value is not None:
        yield value


def _inner_fields(mapping: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in mapping.items():
        if prefix:
            yield prefix + name, value
        if isinstance(value, Mapping) and depth < _DEEPEST:
            # Dots separate the names of places, so one inside a nested name cannot be asked for.
            plain = {key: one for key, one in value.items() if "." not in key}
            yield from _inner_fields(plain, f"{prefix}{name}.", depth + 1)


def column_name(field: str) -> str:
    """Return the marked name of the column that a filter's field stands for.

    >>> column_name("Label"), column_name("camera"), column_name("meta.path")
    ('=label', '.camera', '.path')
    """
    if field.lower() in OWN_FIELDS:
        return _OWN + field.lower()
    return _METADATUM + field.removeprefix("meta.")


@dataclass(frozen=True)
class Values:
    """Distinct values of a column: as filters write them, without case, as numbers, and of which kind they are."""

    text: Any
    folded: Any
    number: FloatArray
    kind: AnyArray

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, places: slice) -> Values:
        start, length = places.start, places.stop - places.start
        parts = self.text.slice(start, length), self.folded.slice(start, length)
        return Values(*parts, self.number[places], self.kind[places])

    @cached_property
    def _has_number(self) -> BoolArray:
        return np.asarray(self.kind & _HAS_NUMBER > 0)

    @cached_property
    def kinds(self) -> AnyArray:
        """What the values are: STRING, NUMBER, TRUTH or OTHER."""
        return np.asarray(self.kind & (_HAS_NUMBER - 1))

    @cached_property
    def is_askable(self) -> BoolArray:
        """Which values a filter can ask for with ``=``: texts that are not empty, truths and finite numbers."""
        lengths = search_package("pyarrow.compute").binary_length(self.text).to_numpy(zero_copy_only=False)
        plain = (self.kinds == TRUTH) | ((self.kinds == STRING) & (lengths > 0))
        return np.asarray(plain | ((self.kinds == NUMBER) & np.isfinite(self.number)))

    def plain_texts(self, places: IntArray) -> Any:
        """Return the texts of some values, whole numbers without a fraction."""
        texts = self.text.take(search_package("pyarrow").array(places))
        whole = (self.kinds[places] == NUMBER) & (self.number[places] == np.floor(self.number[places]))
        whole &= np.abs(self.number[places]) < _LARGEST_WHOLE
        if not whole.any():
            return texts
        plain = [str(int(number)) for number in self.number[places[whole]].tolist()]
        return search_package("pyarrow.compute").replace_with_mask(texts, whole, _texts(plain))

    def meeting(self, operator: str, given: str, *, whole: bool) -> BoolArray:
        """Return which values stand in this relation to the given text; see :func:`diptych.collection.Filter`."""
        if not len(self):
            return np.zeros(0, dtype=bool)
        return self._like(given, whole) if operator == ":" else self._ordered(operator, given)

    def _like(self, given: str, whole: bool) -> BoolArray:
        number = number_of(given)
        if number is None:
            return self._like_text(given, whole)
        return np.where((self.kinds == NUMBER) & self._has_number, self.number == number, self._like_text(given, whole))

    def _like_text(self, given: str, whole: bool) -> BoolArray:
        pc = search_package("pyarrow.compute")
        folded = given.casefold()
        if "*" in folded or "?" in folded:
            marks = {"*": ".*", "?": "."}
            pattern = "".join(marks.get(letter) or re.escape(letter) for letter in folded)
            return _as_array(pc.match_substring_regex(self.folded, rf"(?s)\A(?:{pattern})\z"))
        if whole:
            return _as_array(pc.equal(self.folded, folded))
        return _as_array(pc.match_substring(self.folded, folded))

    def _ordered(self, operator: str, given: str) -> BoolArray:
        """Compare both as numbers where both are, as dates cut to the given length, otherwise as texts."""
        pc = search_package("pyarrow.compute")
        compared = _compared(pc, operator, self.text, given)
        date = given_date(given)
        if date is not None:
            dated = _as_array(pc.match_substring_regex(self.text, rf"\A{STORED_DATE.pattern}"))
            if dated.any():
                cut = pc.utf8_slice_codeunits(pc.replace_substring(self.text, " ", "T"), 0, len(date))
                compared = np.where(dated, _compared(pc, operator, cut, date), compared)
        number = number_of(given)
        if number is None:
            return compared
        # An id of digits is a name: 007 is not 7.
        by_value = self._has_number & (self.kinds != STRING) if operator == "=" else self._has_number
        return np.where(by_value, _NUMBERS[operator](self.number, number), compared)


_NUMBERS = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less}
_TEXTS = {"=": "equal", ">=": "greater_equal", "<=": "less_equal", ">": "greater", "<": "less"}


def _compared(pc: Any, operator: str, texts: Any, given: str) -> BoolArray:
    return _as_array(pc.call_function(_TEXTS[operator], [texts, search_package("pyarrow").scalar(given, texts.type)]))


def _as_array(column: Any) -> BoolArray:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)


@dataclass(frozen=True)
class Column:
    """One field: its distinct values, and for each entry the place of its item and the number of its value."""

    values: Values
    owners: IntArray
    codes: IntArray

    def items_meeting(self, wanted: Filter, n_items: int) -> BoolArray:
        """Return which of the items meet a comparison other than ``!=``."""
        return self._owners_of(
            self.values.meeting(wanted.operator, wanted.value, whole=wanted.field.lower() == "label"), n_items
        )

    def items_among(self, texts: Iterable[str], n_items: int) -> BoolArray:
        """Return which of the items have one of some texts."""
        meets = search_package("pyarrow.compute").is_in(self.values.text, value_set=_texts(list(texts)))
        return self._owners_of(_as_array(meets), n_items)

    def _owners_of(self, meets: BoolArray, n_items: int) -> BoolArray:
        found = np.zeros(n_items, dtype=bool)
        found[self.owners[meets[self.codes]]] = True
        return found

    def counts(self, chosen: BoolArray | None) -> IntArray:
        """Return how many of the chosen items have each value."""
        codes = self.codes if chosen is None else self.codes.compress(chosen.take(self.owners))
        return np.bincount(codes, minlength=len(self.values))


class Columns:
    """The columns of some items, as long arrays in the order of their fields, which may lie in a file."""

    def __init__(self, names: Iterable[str], starts: AnyArray, values: Values, owners: IntArray, codes: IntArray):
        self.places = {name: place for place, name in enumerate(names)}
        self.starts = starts
        self.values, self.owners, self.codes = values, owners, codes

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def __getitem__(self, name: str) -> Column:
        place = self.places[name]
        (first, end), (start, stop) = self.starts[:, place : place + 2].tolist()
        return Column(self.values[first:end], self.owners[start:stop], self.codes[start:stop])

    def n_entries(self, name: str) -> int:
        """Return how many entries a column has, dead items included."""
        place = self.places.get(name)
        return 0 if place is None else int(self.starts[1, place + 1] - self.starts[1, place])

    @property
    def metadata(self) -> list[str]:
        """The names of the metadata, without their mark."""
        return [name[1:] for name in self.places if name[0] == _METADATUM]

    def coordinates(self, n_items: int) -> tuple[FloatArray, FloatArray]:
        """Return the latitudes and longitudes of the items, NaN where there are none."""
        found = np.full((2, n_items), math.nan)
        for row, name in zip(found, (".latitude", ".longitude"), strict=True):
            if name in self:
                column = self[name]
                row[column.owners] = column.values.number[column.codes]
        return found[0], found[1]

    def matching(self, wanted: Filter, n_items: int) -> BoolArray:
        """Return which of the items meet a filter."""
        if wanted.operator == "and":
            return np.asarray(np.logical_and.reduce([self.matching(part, n_items) for part in wanted.parts]))
        if wanted.operator == "or":
            return np.asarray(np.logical_or.reduce([self.matching(part, n_items) for part in wanted.parts]))
        if wanted.operator == "not":
            return ~self.matching(wanted.parts[0], n_items)
        if wanted.operator == "!=":
            return ~self.matching(Filter("=", field=wanted.field, value=wanted.value), n_items)
        if wanted.members is not None:
            return self["=id"].items_among(wanted.members, n_items) if "=id" in self else np.zeros(n_items, dtype=bool)
        if wanted.is_geographic:
            north, east = self.coordinates(n_items)
            found = region_of(wanted.field.lower(), wanted.value).holds(north, east)
            return np.asarray(found & np.isfinite(north) & np.isfinite(east))
        name = column_name(wanted.field)
        return self[name].items_meeting(wanted, n_items) if name in self else np.zeros(n_items, dtype=bool)


class ColumnsBuilder:
    """Makes columns of rows of items that are given batch by batch."""

    def __init__(self) -> None:
        self._chunks: defaultdict[str, defaultdict[int, list[tuple[Any, IntArray]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._n_items = 0

    def add(self, rows: Any) -> None:
        """Append a batch of rows, as :func:`item_rows` gives it."""
        for name, kind, texts, whose in own_columns(rows):
            self._append(name, kind, texts, np.arange(len(rows)) if whose is None else whose)
        metadata = json_objects(rows["metadata"])
        if rows["facts"].null_count < len(rows):
            facts = json_objects(rows["facts"])
            metadata = [joined_fields(said, given) for said, given in zip(facts, metadata, strict=True)]
        for name, values, owners in _fields(metadata):
            for made_of, texts, whose in _by_type(values, owners):
                self._append(_METADATUM + name, _PLAIN.get(made_of, OTHER), texts, whose)
        self._n_items += len(rows)

    def _append(self, name: str, kind: int, texts: Any, owners: IntArray) -> None:
        if len(texts):
            large = texts.cast(search_package("pyarrow").large_string())
            self._chunks[name][kind].append((large.dictionary_encode(), (owners + self._n_items).astype(np.int32)))

    def build(self) -> Columns:
        """Return the columns."""
        pa = search_package("pyarrow")
        texts: list[Any] = [_texts([])]
        kinds: list[AnyArray] = [np.zeros(0, dtype=np.uint8)]
        owners: list[IntArray] = [np.zeros(0, dtype=np.int32)]
        codes: list[IntArray] = [np.zeros(0, dtype=np.int32)]
        starts = [[0, 0]]
        for by_kind in self._chunks.values():
            n_values, n_entries = starts[-1]
            for kind, chunks in by_kind.items():
                encoded = pa.chunked_array([chunk for chunk, _ in chunks]).unify_dictionaries()
                held = encoded.chunk(encoded.num_chunks - 1).dictionary
                places = [chunk.indices.to_numpy() for chunk in encoded.chunks]
                whose, which = _distinct_pairs(np.concatenate([own for _, own in chunks]), np.concatenate(places))
                texts.append(held)
                kinds.append(np.full(len(held), kind, dtype=np.uint8))
                owners.append(whose)
                codes.append(which + np.int32(n_values - starts[-1][0]))
                n_values, n_entries = n_values + len(held), n_entries + len(whose)
            starts.append([n_values, n_entries])
        values = _values(pa.concat_arrays(texts), np.concatenate(kinds))
        parts = values, np.concatenate(owners), np.concatenate(codes)
        return Columns(self._chunks, np.array(starts, dtype=np.int64).T.copy(), *parts)


def _distinct_pairs(owners: IntArray, codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return owners and codes; an item that has one value twice counts once."""
    if (np.diff(owners) > 0).all():
        return owners, codes.astype(np.int32)
    pairs = np.unique(owners.astype(np.int64) << 32 | codes.astype(np.int64))
    return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)


# What Python may read as a number, and little else; trying costs more than looking.
_SPACE = r"[\s\pZ\x{85}\x0b\x1c-\x1f]*"
_NUMBER_LIKE = rf"(?i)\A{_SPACE}[+-]?([\p{{Nd}}._]+(e[+-]?[\p{{Nd}}_]+)?|nan|inf|infinity){_SPACE}\z"


def _values(texts: Any, kinds: AnyArray) -> Values:
    pc, pa = search_package("pyarrow.compute"), search_package("pyarrow")
    folded, numbers = [_texts([])], np.full(len(texts), math.nan)
    # A million texts as objects, all at once, would take more than everything else together.
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts.slice(start, _TEXTS_AT_ONCE)
        is_other = pc.invert(pc.string_is_ascii(some))
        others = _texts([text.casefold() for text in some.filter(is_other).to_pylist()])
        folded.append(pc.replace_with_mask(pc.ascii_lower(some), is_other, others))
        may_be = _as_array(pc.match_substring_regex(some, _NUMBER_LIKE))
        places = np.flatnonzero(may_be & (kinds[start : start + len(some)] <= NUMBER))
        for place, text in zip((places + start).tolist(), some.take(pa.array(places)).to_pylist(), strict=True):
            number = number_of(text)
            if number is not None:
                numbers[place] = number
                kinds[place] |= _HAS_NUMBER
    return Values(texts, pa.concat_arrays(folded), numbers, kinds)


def _texts(texts: Sequence[str]) -> Any:
    pa = search_package("pyarrow")
    return pa.array(texts, pa.large_string())
