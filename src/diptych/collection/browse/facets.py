"""Facets: how often each value of a field occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.browse.columns import NUMBER, TRUTH, Column, Values
from diptych.collection.browse.filter import Filter
from diptych.collection.storage.layout import search_package


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
