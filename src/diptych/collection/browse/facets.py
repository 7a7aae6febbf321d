"""Facets: the fields of all items as columns, and how often each value occurs."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.browse.filter import Filter, filter_name, text_of
from diptych.collection.storage.item import Item


@dataclass(frozen=True)
class FacetValue:
    """A value, how many items have it, and the filter that finds them."""

    value: str | int | float | bool
    count: int
    filter: str


@dataclass(frozen=True)
class Facet:
    """A field of the items with its most frequent values, or with its range when it holds many different numbers.

    ``field`` is the name that filters use: ``label``, or that of a metadatum.
    """

    field: str
    kind: Literal["values", "range"]
    values: tuple[FacetValue, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


Value = str | int | float | bool


class FacetColumn:
    """The values of one field and the numbers of the items that have them; counting is one pass over numbers.

    What no filter can ask for with ``=`` is left out; values that one filter finds are one value.

    >>> facet = FacetColumn("colour", [0, 1, 2], ["red", "blue", "red"]).facet(None, 10)
    >>> [(value.value, value.count, value.filter) for value in facet.values]
    [('red', 2, 'colour=red'), ('blue', 1, 'colour=blue')]
    """

    def __init__(self, field: str, owners: Sequence[int], values: Sequence[Any]) -> None:
        self.field = field
        distinct, held = _numbered(values)
        self._values: list[Value] = []
        code_of = np.array(self._merged(distinct), dtype=np.int64)
        codes, items = code_of[held], np.asarray(owners, dtype=np.int64)
        items, codes = items[codes >= 0], codes[codes >= 0]
        if (np.diff(items) <= 0).any():
            # An item with several values counts once for each of them.
            pairs = np.unique(items * (len(self._values) + 1) + codes)
            items, codes = np.divmod(pairs, len(self._values) + 1)
        self._items, self._codes = items, codes

    def _merged(self, distinct: Sequence[Any]) -> list[int]:
        """Return the code of each distinct value, −1 for one that is left out."""
        kinds = {type(value) for value in distinct}
        # Of one kind, values are equal when their texts are, and making those takes most of the time.
        is_one_kind = kinds <= {str} or kinds <= {int, float}
        places: dict[Value, int] = {}
        codes = []
        for value in distinct:
            plain = _plain(value)
            if plain is None:
                codes.append(-1)
                continue
            code = places.setdefault(plain if is_one_kind else text_of(plain), len(self._values))
            if code == len(self._values):
                self._values.append(plain)
            codes.append(code)
        return codes

    def __len__(self) -> int:
        return len(self._codes)

    def facet(self, chosen: BoolArray | None, limit: int) -> Facet | None:
        """Return the facet among the chosen items, None when there is nothing worth choosing by."""
        codes = self._codes if chosen is None else self._codes[chosen[self._items]]
        if not len(codes):
            return None
        counts = np.bincount(codes, minlength=len(self._values))
        if self._is_numeric and len(self._values) > limit:
            present = self._numbers[counts > 0]
            return Facet(self.field, "range", minimum=float(present.min()), maximum=float(present.max()))
        if len(self._values) > limit and self._most_frequent == 1:
            # A name or a description: as many values as items.
            return None
        return Facet(self.field, "values", self._most_common(counts, limit))

    def _most_common(self, counts: IntArray, limit: int) -> tuple[FacetValue, ...]:
        codes = np.flatnonzero(counts)
        if len(codes) > limit:
            codes = codes[counts[codes] >= np.partition(counts[codes], -limit)[-limit]]
        # Ties would otherwise depend on which item came first.
        best = heapq.nsmallest(limit, codes.tolist(), key=lambda code: (-counts[code], text_of(self._values[code])))
        chosen = [(self._values[code], int(counts[code])) for code in best]
        return tuple(
            FacetValue(value, count, str(Filter("=", field=self.field, value=text_of(value))))
            for value, count in chosen
        )

    @cached_property
    def _most_frequent(self) -> int:
        return int(np.bincount(self._codes).max(initial=0))

    @cached_property
    def _is_numeric(self) -> bool:
        return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in self._values)

    @cached_property
    def _numbers(self) -> FloatArray:
        return np.array(self._values, dtype=np.float64)


def _numbered(values: Sequence[Any]) -> tuple[list[Any], IntArray]:
    """Return the distinct values, and the number among them of each value."""
    kinds = [type(value) for value in values]
    # True equals 1, but is another value; so where there are several types each is looked up together with its own.
    keys: Sequence[Any] = values if len(set(kinds)) <= 1 else list(zip(kinds, values, strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    distinct = list(numbers) if keys is values else [value for _, value in numbers]
    return distinct, np.fromiter(map(numbers.__getitem__, keys), dtype=np.int64, count=len(keys))


def _plain(value: Any) -> Value | None:
    if isinstance(value, (bool, str)):
        return value if value != "" else None
    if isinstance(value, (int, float)) and math.isfinite(value):
        return int(value) if float(value).is_integer() and abs(value) < 1e15 else value
    return None


_MOST_FIELDS = 50
Entries = tuple[list[int], list[Any]]


class Facets:
    """The labels and metadata of some items by field, made once and counted for any choice of the items."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._places: dict[str, int] = {}
        # Owners and values side by side: pairs of them would be a million objects for the garbage collector to visit.
        labels: Entries = ([], [])
        fields: defaultdict[str, Entries] = defaultdict(lambda: ([], []))
        for place, item in enumerate(items):
            self._places[item.id] = place
            for label in item.labels:
                labels[0].append(place)
                labels[1].append(label)
            for name, value in item.metadata.items():
                # Most values are plain, and there are very many of them.
                if type(value) in _SCALARS:
                    owners, values = fields[name]
                    owners.append(place)
                    values.append(value)
                    continue
                for inner, one in _inner_values(name, value):
                    fields[inner][0].append(place)
                    fields[inner][1].append(one)
        widest = sorted(fields, key=lambda name: (-len(fields[name][0]), name))[:_MOST_FIELDS]
        self._columns = [FacetColumn("label", *labels)]
        self._columns += [FacetColumn(filter_name(name), *fields[name]) for name in widest]

    def among(self, ids: Collection[str] | None, limit: int) -> list[Facet]:
        """Return the facets of the items with these ids, or of all; labels first, then the fields most items have."""
        chosen = None
        if ids is not None:
            chosen = np.zeros(len(self._places), dtype=bool)
            chosen[[self._places[item_id] for item_id in ids]] = True
        facets = (column.facet(chosen, limit) for column in self._columns)
        return [facet for facet in facets if facet is not None]


def _inner_values(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value with the dotted name of its place; one of several counts by itself."""
    if type(value) in _SCALARS:
        yield name, value
    elif isinstance(value, Mapping):
        for inner, one in value.items():
            yield from _inner_values(f"{name}.{inner}", one)
    elif isinstance(value, (list, tuple)):
        yield from ((name, one) for one in value if type(one) in _SCALARS)


_SCALARS = frozenset({str, int, float, bool})
