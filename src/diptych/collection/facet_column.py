"""One field of all items, as columns."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.facet import Facet
from diptych.collection.facet_value import FacetValue
from diptych.collection.filter import Filter

Value = str | int | float | bool


class FacetColumn:
    """The values of one field: which item has which, so that counting is one pass over numbers.

    ``owners`` are the numbers of the items, one for each of ``values``. What no filter can ask for with ``=`` is left
    out; values that one filter finds are one value, whatever their types.

    >>> from diptych.collection.facet_column import FacetColumn
    >>> facet = FacetColumn("colour", [0, 1, 2], ["red", "blue", "red"]).facet(None, 10)
    >>> [(value.value, value.count, value.filter) for value in facet.values]
    [('red', 2, 'colour=red'), ('blue', 1, 'colour=blue')]
    """

    def __init__(self, field: str, owners: Sequence[int], values: Sequence[Any]) -> None:
        self.field = field
        # True equals 1, but is another value; so each is looked up together with its type.
        kinds = [type(value) for value in values]
        raw: dict[tuple[type, Any], int] = {}
        held = np.array([raw.setdefault(key, len(raw)) for key in zip(kinds, values, strict=True)], dtype=np.int64)
        self._texts: list[str] = []
        self._values: list[Value] = []
        code_of = np.array(self._merged([value for _, value in raw]), dtype=np.int64)
        codes, items = code_of[held], np.asarray(owners, dtype=np.int64)
        pairs = np.unique(items[codes >= 0] * (len(self._values) + 1) + codes[codes >= 0])
        self._items, self._codes = np.divmod(pairs, len(self._values) + 1)

    def _merged(self, distinct: Sequence[Any]) -> list[int]:
        """Return the code of each distinct value, −1 for one that is left out."""
        places: dict[str, int] = {}
        codes = []
        for value in distinct:
            plain = _plain(value)
            if plain is None:
                codes.append(-1)
                continue
            text = _text(plain)
            if text not in places:
                places[text] = len(self._values)
                self._texts.append(text)
                self._values.append(plain)
            codes.append(places[text])
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
        best = heapq.nsmallest(limit, codes.tolist(), key=lambda code: (-counts[code], self._texts[code]))
        return tuple(
            FacetValue(
                self._values[code],
                int(counts[code]),
                str(Filter("=", field=self.field, value=self._texts[code])),
            )
            for code in best
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


def _plain(value: Any) -> Value | None:
    if isinstance(value, (bool, str)):
        return value if value != "" else None
    if isinstance(value, (int, float)) and math.isfinite(value):
        return int(value) if float(value).is_integer() and abs(value) < 1e15 else value
    return None


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
