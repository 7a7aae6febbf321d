"""One field of all items, as columns."""

from __future__ import annotations

import math
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

    >>> import numpy as np
    >>> from diptych.collection.facet_column import FacetColumn
    >>> column = FacetColumn("colour")
    >>> for item, colour in enumerate(["red", "blue", "red"]):
    ...     column.put(item, colour)
    >>> [(value.value, value.count, value.filter) for value in column.facet(None, 10).values]
    [('red', 2, 'colour=red'), ('blue', 1, 'colour=blue')]
    """

    def __init__(self, field: str) -> None:
        self.field = field
        self._codes: dict[str, int] = {}
        self._values: list[Value] = []
        self._owners: list[int] = []
        self._held: list[int] = []

    def __len__(self) -> int:
        return len(self._owners)

    def put(self, owner: int, value: Any) -> None:
        """Note a value of an item; what no filter can ask for with ``=`` is left out."""
        plain = _plain(value)
        if plain is None:
            return
        # Values that one filter finds are one value, whatever their types.
        text = _text(plain)
        code = self._codes.setdefault(text, len(self._values))
        if code == len(self._values):
            self._values.append(plain)
        if not (self._owners and self._owners[-1] == owner and code in self._held[self._first_of_last(owner) :]):
            self._owners.append(owner)
            self._held.append(code)

    def facet(self, chosen: BoolArray | None, limit: int) -> Facet | None:
        """Return the facet among the chosen items, None when there is nothing worth choosing by."""
        codes = self._codes_held if chosen is None else self._codes_held[chosen[self._item_of]]
        counts = np.bincount(codes, minlength=len(self._values))
        if not len(codes):
            return None
        if self._is_numeric and len(self._values) > limit:
            present = self._numbers[counts > 0]
            return Facet(self.field, "range", minimum=float(present.min()), maximum=float(present.max()))
        if len(self._values) > limit and self._most_frequent == 1:
            # A name or a description: as many values as items.
            return None
        return Facet(self.field, "values", self._most_common(counts, limit))

    def _most_common(self, counts: IntArray, limit: int) -> tuple[FacetValue, ...]:
        # Ties would otherwise depend on which item came first.
        best = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (-counts[code], _text(self._values[code])))
        return tuple(
            FacetValue(
                self._values[code],
                int(counts[code]),
                str(Filter("=", field=self.field, value=_text(self._values[code]))),
            )
            for code in best[:limit]
        )

    def _first_of_last(self, owner: int) -> int:
        first = len(self._owners)
        while first and self._owners[first - 1] == owner:
            first -= 1
        return first

    @cached_property
    def _item_of(self) -> IntArray:
        return np.array(self._owners, dtype=np.int64)

    @cached_property
    def _codes_held(self) -> IntArray:
        return np.array(self._held, dtype=np.int64)

    @cached_property
    def _most_frequent(self) -> int:
        return int(np.bincount(self._codes_held).max(initial=0))

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
