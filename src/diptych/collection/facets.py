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


class Facets:
    """The labels and metadata of some items by field, made once and counted for any choice of the items."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._places: dict[str, int] = {}
        columns: dict[str, FacetColumn] = {}
        for place, item in enumerate(items):
            self._places[item.id] = place
            for label in item.labels:
                columns.setdefault("label", FacetColumn("label")).put(place, label)
            for name, value in _values(item.metadata):
                field = filter_name(name)
                if field not in columns:
                    columns[field] = FacetColumn(field)
                columns[field].put(place, value)
        labels = columns.pop("label", None)
        widest = sorted(columns.values(), key=lambda column: (-len(column), column.field))[:_MOST_FIELDS]
        self._columns = widest if labels is None else [labels, *widest]

    def among(self, ids: Collection[str] | None, limit: int) -> list[Facet]:
        """Return the facets of the items with these ids, or of all; labels first, then the fields most items have."""
        chosen = None
        if ids is not None:
            chosen = np.zeros(len(self._places), dtype=bool)
            chosen[[self._places[item_id] for item_id in ids]] = True
        facets = (column.facet(chosen, limit) for column in self._columns)
        return [facet for facet in facets if facet is not None]


def _values(metadata: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with the dotted name of its place; one of several counts by itself."""
    for name, value in metadata.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{name}.")
        elif isinstance(value, (list, tuple)):
            yield from ((f"{prefix}{name}", one) for one in value)
        else:
            yield f"{prefix}{name}", value
