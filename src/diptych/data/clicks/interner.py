"""Numbers for strings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from diptych.data.clicks.string_table import StringTable


class Interner:
    """Gives every distinct string a number, in the order of first appearance.

    >>> from diptych.data.clicks.interner import Interner
    >>> interner = Interner()
    >>> interner.numbers(["b", "a", "b"]).tolist()
    [0, 1, 0]
    >>> list(interner.table())
    ['b', 'a']
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, strings: Iterable[str]) -> NDArray[np.int32]:
        """Return the number of each string; strings not seen before get the next ones."""
        known = self._numbers
        return np.array([known.setdefault(string, len(known)) for string in strings], dtype=np.int32)

    def table(self) -> StringTable:
        """Return the strings seen so far, each at the place of its number."""
        return StringTable.of(self._numbers)
