"""Counts of items: by the values of a field, by the month they are from, and by the field of a map they lie in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.browse.columns import NUMBER, TRUTH, Column, Columns, Values
from diptych.collection.browse.filter import Filter
from diptych.collection.storage.layout import search_package
from diptych.data.photo_facts.places import Box

Part = tuple[Columns, int, BoolArray | None]
"""Columns, how many items they have, and which of these to count, None for all."""

_STEPS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_CELLS_ACROSS = 36
_DIGITS = 4


@dataclass(frozen=True)
class Period:
    """A month, or a year where no more is known, how many items were taken in it, and the filter that finds them."""

    period: str
    count: int
    filter: str


@dataclass(frozen=True)
class MapCell:
    """A field of the map: the middle of its items, how many there are, the name of a place, and their filter."""

    latitude: float
    longitude: float
    count: int
    place: str | None
    filter: str


def count_periods(parts: Iterable[Part]) -> tuple[Period, ...]:
    """Return the months in which items were taken, the earliest first."""
    pc, counts = search_package("pyarrow.compute"), Counter[str]()
    for columns, _, chosen in parts:
        if ".taken" in columns:
            taken = columns[".taken"]
            months = pc.utf8_slice_codeunits(taken.values.text, 0, 7)
            is_date = pc.match_substring_regex(months, r"\A[0-9]{4}(-[0-9]{2})?\z")
            for month, is_month, count in zip(
                months.to_pylist(), is_date.to_pylist(), taken.counts(chosen).tolist(), strict=True
            ):
                if is_month and count:
                    counts[month] += count
    return tuple(
        Period(month, count, str(Filter("=", field="taken", value=month))) for month, count in sorted(counts.items())
    )


def count_cells(parts: Sequence[Part], box: Box) -> tuple[MapCell, ...]:
    """Return the fields of a map of some part of the world that have items in them, the fullest first."""
    step = next((step for step in _STEPS if (box.east - box.west) / step >= _CELLS_ACROSS), _STEPS[-1])
    located = [_located(*part, box) for part in parts]
    if not any(len(norths) for norths, *_ in located):
        return ()
    norths, easts, places = map(np.concatenate, zip(*located, strict=True))
    # The very numbers that the filters will have, so that a filter finds what was counted.
    rows, columns = _edges(-90, 90, step), _edges(-180, 180, step)
    cells: IntArray = _place_between(rows, norths) * len(columns) + _place_between(columns, easts)
    found, first, which, counts = np.unique(cells, return_index=True, return_inverse=True, return_counts=True)
    middles = [np.bincount(which, weights=axis) / counts for axis in (norths, easts)]
    made = []
    for place, cell in enumerate(found.tolist()):
        row, column = divmod(cell, len(columns))
        corners = f"{rows[row]:g},{columns[column]:g} to {rows[row + 1]:g},{columns[column + 1]:g}"
        north, east = (round(float(axis[place]), _DIGITS) for axis in middles)
        wanted = Filter(":", field="within", value=corners)
        made.append(MapCell(north, east, int(counts[place]), places[first[place]], str(wanted)))
    return tuple(sorted(made, key=lambda cell: (-cell.count, cell.filter)))


def _located(columns: Columns, n_items: int, chosen: BoolArray | None, box: Box) -> tuple[FloatArray, FloatArray, Any]:
    """Return the coordinates of the chosen items in a box, and the names of their places."""
    north, east = columns.coordinates(n_items)
    there = np.isfinite(north) & np.isfinite(east) & box.holds(north, east)
    rows = np.flatnonzero(there if chosen is None else there & chosen)
    names = np.full(n_items, None, dtype=object)
    if ".place" in columns:
        column = columns[".place"]
        # Of a picture with several, any.
        names[column.owners] = column.values.text.to_numpy(zero_copy_only=False)[column.codes]
    return north[rows], east[rows], names[rows]


def _edges(first: float, last: float, step: float) -> FloatArray:
    return np.round(np.arange(round((last - first) / step) + 1) * step + first, _DIGITS)


def _place_between(edges: FloatArray, values: FloatArray) -> IntArray:
    # The last field ends with the world, and its edge belongs to it.
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


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


def facet_of(
    field: str, columns: Sequence[tuple[Column, BoolArray | None, BoolArray | None]], limit: int
) -> Facet | None:
    """Return the facet of a field whose columns lie in several segments, None when there is nothing to choose by.

    Each column comes with the live items of its segment and with those to count among. What no filter can ask for with
    ``=`` is left out; values that one filter finds are one value.
    """
    every = [(column.values, column.counts(live)) for column, live, _ in columns]
    there = _Counts.of(every)
    if not len(there.counts):
        return None
    among = [(column.values, column.counts(chosen)) for column, _, chosen in columns]
    found = _Counts.of(among)
    if not len(found.counts):
        return None
    if there.is_numeric and len(there.counts) > limit:
        return Facet(field, "range", minimum=float(found.numbers.min()), maximum=float(found.numbers.max()))
    if len(there.counts) > limit and there.counts.max() == 1:
        # A name or a description: as many values as items.
        return None
    return Facet(field, "values", found.most_common(field, limit))


@dataclass(frozen=True)
class _Counts:
    """Different values that occur, and how often."""

    texts: Any
    numbers: FloatArray
    kinds: IntArray
    counts: IntArray

    @classmethod
    def of(cls, parts: Sequence[tuple[Values, IntArray]]) -> _Counts:
        pa = search_package("pyarrow")
        tables = []
        for values, counts in parts:
            usable = np.flatnonzero((counts > 0) & values.is_askable)
            number = values.number[usable]
            columns = {"text": values.plain_texts(usable), "number": number, "kind": values.kinds[usable]}
            tables.append(pa.table({**columns, "count": counts[usable]}))
        joined = pa.concat_tables(tables)
        if len(joined):
            first = joined.group_by("text", use_threads=False)
            joined = first.aggregate([("number", "first"), ("kind", "first"), ("count", "sum")])
            joined = joined.rename_columns(["text", "number", "kind", "count"])
        arrays = (joined[name].to_numpy() for name in ("number", "kind", "count"))
        return cls(joined["text"], *arrays)

    @property
    def is_numeric(self) -> bool:
        return bool((self.kinds == NUMBER).all())

    def most_common(self, field: str, limit: int) -> tuple[FacetValue, ...]:
        places = np.arange(len(self.counts))
        if len(places) > limit:
            places = places[self.counts >= np.partition(self.counts, -limit)[-limit]]
        texts = self.texts.take(places).to_pylist()
        # Ties would otherwise depend on which item came first.
        best = sorted(zip((-self.counts[places]).tolist(), texts, places.tolist(), strict=True))[:limit]
        return tuple(
            FacetValue(_value(text, int(self.kinds[place])), -count, str(Filter("=", field=field, value=text)))
            for count, text, place in best
        )


def _value(text: str, kind: int) -> Value:
    if kind == TRUTH:
        return text == "true"
    if kind == NUMBER:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    return text
