"""Facets of all items."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from diptych.collection.facet import Facet
from diptych.collection.facet_column import FacetColumn
from diptych.collection.field_names import filter_name
from diptych.collection.item import Item

_MOST_FIELDS = 50
# No metadatum has this name.
_LABEL = ""


class Facets:
    """The labels and metadata of some items by field, made once and counted for any choice of the items."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._places: dict[str, int] = {}
        owners: dict[str, list[int]] = {_LABEL: []}
        values: dict[str, list[Any]] = {_LABEL: []}
        for place, item in enumerate(items):
            self._places[item.id] = place
            for label in item.labels:
                owners[_LABEL].append(place)
                values[_LABEL].append(label)
            for name, value in _values(item.metadata):
                if name not in owners:
                    owners[name], values[name] = [], []
                owners[name].append(place)
                values[name].append(value)
        widest = sorted(owners.keys() - {_LABEL}, key=lambda name: (-len(owners[name]), name))[:_MOST_FIELDS]
        self._columns = [FacetColumn("label", owners[_LABEL], values[_LABEL])]
        self._columns += [FacetColumn(filter_name(name), owners[name], values[name]) for name in widest]

    def among(self, ids: Collection[str] | None, limit: int) -> list[Facet]:
        """Return the facets of the items with these ids, or of all; labels first, then the fields most items have."""
        chosen = None
        if ids is not None:
            chosen = np.zeros(len(self._places), dtype=bool)
            chosen[[self._places[item_id] for item_id in ids]] = True
        facets = (column.facet(chosen, limit) for column in self._columns)
        return [facet for facet in facets if facet is not None]


def _values(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value with the dotted name of its place; one of several counts by itself."""
    for name, value in metadata.items():
        if type(value) in _SCALARS:
            yield name, value
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in _values(value))
        elif isinstance(value, (list, tuple)):
            yield from ((name, one) for one in value if type(one) in _SCALARS)


_SCALARS = frozenset({str, int, float, bool})
