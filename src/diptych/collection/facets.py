"""Facets of all items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from diptych.collection.facet import Facet
from diptych.collection.facet_column import FacetColumn
from diptych.collection.field_names import filter_name
from diptych.collection.item import Item

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
