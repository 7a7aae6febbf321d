"""Counts of items: by the values of a field, by the month they are from, and by the field of a map they lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.filter import Filter
from diptych.collection.store.columns import Columns, filter_text, whole
from diptych.collection.store.dialect import Connection
from diptych.collection.store.filtering import MAX_COMPARED, matching_items
from diptych.collection.store.values import LABEL, stored_value
from diptych.data.photo_facts.places import Box

MAX_FIELDS = 50
# As many values as pictures: a time line and a map show them.
_NO_FACETS = ("taken", "latitude", "longitude", "altitude")
# Fields of photographs that few people choose by.
_TECHNICAL = ("aperture", "exposure", "focal_length", "iso", "orientation", "taken_from")
_STEPS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_CELLS_ACROSS = 36
_DIGITS = 4


@dataclass(frozen=True)
class Period:
    """A month, or a year where no more is known."""

    period: str
    """As in 2019-07."""
    count: int
    """How many items were taken in it."""
    filter: str
    """The filter that finds them."""


@dataclass(frozen=True)
class MapCell:
    """A field of a map of the world that has items in it."""

    latitude: float
    """Of the middle of its items, as longitude."""
    longitude: float
    """Degrees east."""
    count: int
    """How many items it has."""
    place: str | None
    """The name of a place in it, where one is known."""
    filter: str
    """The filter that finds its items."""


@dataclass(frozen=True)
class FacetValue:
    """A value of a field."""

    value: str | int | float | bool
    """The label, or the value of a metadatum."""
    count: int
    """How many items have it."""
    filter: str
    """The filter that finds them."""


@dataclass(frozen=True)
class Facet:
    """A field to narrow a search down by."""

    field: str
    """The name that filters use: label, or that of a metadatum."""
    kind: Literal["values", "range"]
    """A few values, or the range of many different numbers."""
    values: tuple[FacetValue, ...] = ()
    """The most frequent values."""
    minimum: float | None = None
    """The least number; null where values are no numbers."""
    maximum: float | None = None
    """The largest number."""


def field_names(columns: Columns) -> tuple[str, ...]:
    """Return the names of the metadata that items have, as filters use them, the most frequent first."""
    counts = columns.field_counts
    names = sorted((name for name in counts if name != LABEL), key=lambda name: (-counts[name], name))
    return tuple(names[:MAX_FIELDS])


def chosen_items(db: Connection, columns: Columns, wanted: Filter | None) -> BoolArray | None:
    """Return which items meet a filter, None for all without one."""
    return None if wanted is None else matching_items(db, columns, wanted)


def facets(db: Connection, columns: Columns, wanted: Filter | None, limit: int) -> list[Facet]:
    """Return the facets of the items that meet a filter, or of all: labels, and the fields that most items have.

    What no filter can ask for with ``=`` is left out; values that one filter finds are one value.
    """
    key = ("facets", wanted, limit)
    with columns.lock:
        found = columns.remembered.get(key)
    if found is None:
        chosen = chosen_items(db, columns, wanted)
        counts = columns.live_counts if chosen is None else columns.value_counts(chosen)
        names = [name for name in field_names(columns) if name not in _NO_FACETS]
        names.sort(key=_TECHNICAL.__contains__)
        made = (_facet(db, columns, name, counts, limit) for name in (LABEL, *names) if name in columns.fields)
        found = tuple(facet for facet in made if facet is not None)
        with columns.lock:
            columns.remembered[key] = found
    return list(found)


def _facet(db: Connection, columns: Columns, field: str, all_counts: IntArray, limit: int) -> Facet | None:
    ids = columns.fields[field]
    live, counts = columns.live_counts[ids], all_counts[ids]
    if len(ids) > MAX_COMPARED:
        return _facet_of_many(db, field, ids, live, counts, limit)
    values = columns.values_of(db, field)
    # Without those that later columns have; those that were pruned have no items.
    n_live, n_found = (
        np.bincount(values.groups, weights=every, minlength=len(values.texts) + 1)[:-1].astype(int)
        for every in (columns.counts_of(values.ids), columns.counts_of(values.ids, all_counts))
    )
    there, found = np.flatnonzero(n_live), np.flatnonzero(n_found)
    if not len(found):
        return None
    if len(there) > limit:
        numbers = values.numbers
        if not np.isnan(numbers[there]).any():
            return Facet(field, "range", minimum=float(numbers[found].min()), maximum=float(numbers[found].max()))
        if n_live.max() == 1:
            # A name or a description: as many values as items.
            return None
    # Groups are in the order of their texts, so that ties do not depend on which value came first.
    best = found[np.argsort(-n_found[found], kind="stable")][:limit].tolist()
    shown = ((values.values[place], int(n_found[place]), values.texts[place]) for place in best)
    return Facet(field, "values", tuple(_facet_value(field, *one) for one in shown))


def _facet_of_many(
    db: Connection, field: str, ids: IntArray, live: IntArray, counts: IntArray, limit: int
) -> Facet | None:
    """Return the facet of a field with more values than are read at once: its range, or the most frequent ones."""
    if not counts.any():
        return None
    if db.value("SELECT 1 FROM value WHERE field = ? AND kind <> 1 LIMIT 1", (field,)) is None:
        condition, values = db.among("id", ids[counts > 0])
        ((least, most),) = db.rows(f"SELECT min(number), max(number) FROM value WHERE {condition}", values)
        return Facet(field, "range", minimum=least, maximum=most)
    if live.max() == 1:
        return None
    best = np.lexsort((ids, -counts))[: min(limit, np.count_nonzero(counts))]
    condition, given = db.among("id", ids[best])
    rows = db.rows(f"SELECT id, kind, text FROM value WHERE {condition}", given)
    counted = dict(zip(ids[best].tolist(), counts[best].tolist(), strict=True))
    shown = [(stored_value(kind, text), counted[number]) for number, kind, text in rows]
    made = [_facet_value(field, value, count, filter_text(value)) for value, count in shown if value != ""]
    return Facet(field, "values", tuple(sorted(made, key=lambda one: (-one.count, one.filter))))


def _facet_value(field: str, value: Any, count: int, text: str) -> FacetValue:
    return FacetValue(whole(value), count, str(Filter("=", field=field, value=text)))


def timeline(db: Connection, columns: Columns, wanted: Filter | None) -> tuple[Period, ...]:
    """Return the months in which the items that meet a filter were taken, the earliest first."""
    counts = columns.month_counts(chosen_items(db, columns, wanted))
    return tuple(Period(month, count, str(Filter("=", field="taken", value=month))) for month, count in counts.items())


def map_cells(db: Connection, columns: Columns, wanted: Filter | None, box: Box) -> tuple[MapCell, ...]:
    """Return the fields of a map of some part of the world that have items in them, the fullest first."""
    step = next((step for step in _STEPS if (box.east - box.west) / step >= _CELLS_ACROSS), _STEPS[-1])
    norths, easts = columns.coordinates
    chosen = chosen_items(db, columns, wanted)
    ids = np.flatnonzero(box.holds(norths, easts) if chosen is None else box.holds(norths, easts) & chosen)
    if not len(ids):
        return ()
    norths, easts = norths[ids], easts[ids]
    # The very numbers that the filters will have, so that a filter finds what was counted.
    rows, across = _edges(-90, 90, step), _edges(-180, 180, step)
    cells: IntArray = _place_between(rows, norths) * len(across) + _place_between(across, easts)
    found, first, which, counts = np.unique(cells, return_index=True, return_inverse=True, return_counts=True)
    north, east = (np.round(np.bincount(which, weights=axis) / counts, _DIGITS) for axis in (norths, easts))
    names = _place_names(db, columns, ids[first])
    made = []
    for place, cell in enumerate(found.tolist()):
        row, column = divmod(cell, len(across))
        corners = f"{rows[row]:g},{across[column]:g} to {rows[row + 1]:g},{across[column + 1]:g}"
        wanted_there = str(Filter(":", field="within", value=corners))
        name = names.get(int(ids[first[place]]))
        made.append(MapCell(float(north[place]), float(east[place]), int(counts[place]), name, wanted_there))
    return tuple(sorted(made, key=lambda cell: (-cell.count, cell.filter)))


def _place_names(db: Connection, columns: Columns, items: IntArray) -> dict[int, str]:
    """Return the names of the places of some items; of one with several, any."""
    condition, values = db.among("item", items)
    pairs = np.array(db.rows(f"SELECT value, item FROM item_value WHERE {condition}", values), dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[np.isin(pairs[:, 0], columns.fields.get("place", ()))]
    condition, values = db.among("id", pairs[:, 0])
    texts = dict(db.rows(f"SELECT id, text FROM value WHERE {condition}", values))
    return {item: texts[value] for value, item in pairs.tolist() if value in texts}


def _edges(first: float, last: float, step: float) -> FloatArray:
    return np.round(np.arange(round((last - first) / step) + 1) * step + first, _DIGITS)


def _place_between(edges: FloatArray, values: FloatArray) -> IntArray:
    # The last field ends with the world, and its edge belongs to it.
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
