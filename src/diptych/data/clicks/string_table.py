"""Millions of strings without millions of Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import IntArray, row_blocks
from diptych.data.items import read_only
from diptych.errors import InvalidInputError

_ROWS_AT_ONCE = 65_536


class StringTable(Sequence[str]):
    """A read-only sequence of strings, kept as one buffer of UTF-8 bytes and the offset where each one begins.

    A string costs its bytes and eight more, where a Python string costs fifty and more beside its characters: a log of
    twelve million queries fits into half a gigabyte.

    >>> from diptych.data.clicks import StringTable
    >>> table = StringTable.of(["red car", "café", ""])
    >>> table[1], len(table), table.nbytes
    ('café', 3, 44)
    >>> list(table.take([2, 0]))
    ['', 'red car']
    """

    def __init__(self, content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(content):
            raise InvalidInputError("offsets must run from 0 to the number of bytes; use StringTable.of")
        self.content: NDArray[np.uint8] = read_only(content)
        self.offsets: NDArray[np.int64] = read_only(offsets)

    @classmethod
    def of(cls, strings: Iterable[str]) -> StringTable:
        """Return a table of the given strings, in their order."""
        content = bytearray()
        lengths: list[int] = []
        for string in strings:
            encoded = string.encode("utf-8", "surrogatepass")
            content += encoded
            lengths.append(len(encoded))
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(np.frombuffer(bytes(content), dtype=np.uint8), offsets)

    @property
    def nbytes(self) -> int:
        """How much memory the table takes."""
        return self.content.nbytes + self.offsets.nbytes

    def take(self, rows: Sequence[int] | IntArray) -> StringTable:
        """Return the table of the given rows, in the given order."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        content = np.empty(int(offsets[-1]), dtype=np.uint8)
        for block in row_blocks(len(chosen), _ROWS_AT_ONCE):
            start, stop = offsets[block.start], offsets[block.stop]
            # Where every byte of the block comes from: the string's own start, then one after the other.
            shifts = self.offsets[chosen[block]] - offsets[block.start : block.stop]
            source = np.repeat(shifts, lengths[block]) + np.arange(start, stop)
            content[start:stop] = self.content[source]
        return StringTable(content, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> StringTable: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        row = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= row < len(self):
            raise IndexError(f"row {index} of a table of {len(self)} strings")
        return self._decoded(self.offsets[row], self.offsets[row + 1])

    def __iter__(self) -> Iterator[str]:
        for block in row_blocks(len(self), _ROWS_AT_ONCE):
            bounds = self.offsets[block.start : block.stop + 1].tolist()
            for start, stop in pairwise(bounds):
                yield self._decoded(start, stop)

    def _decoded(self, start: int, stop: int) -> str:
        return self.content[start:stop].tobytes().decode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StringTable):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.content, other.content)

    def __repr__(self) -> str:
        return f"<{len(self):,} strings, {self.nbytes:,} bytes>"
