"""Millions of strings without millions of Python objects: a table of them, and numbers for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, IntArray, row_blocks
from diptych.data.item_sequences import read_only
from diptych.errors import InvalidInputError

_ROWS_AT_ONCE = 65_536
_STRINGS_AT_ONCE = 65_536
_FREE = -1


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


class Interner:
    """Gives every distinct string a number, in the order of first appearance.

    Strings are kept as UTF-8 bytes in one buffer and found by an open-addressing table of 32-bit numbers, which takes
    about 45 bytes a string where a dictionary of Python strings takes over 200. Every hit is compared byte by byte, so
    two strings never share a number.
    """

    def __init__(self) -> None:
        self._content = bytearray()
        self._count = 0
        self._offsets: NDArray[np.int64] = np.zeros(1_024, dtype=np.int64)
        self._hashes: NDArray[np.int64] = np.zeros(1_024, dtype=np.int64)
        self._slots: NDArray[np.int32] = np.full(2_048, _FREE, dtype=np.int32)
        # Strings whose hash belongs to another string already: one in a million logs of ten million queries.
        self._clashing: dict[str, int] = {}

    def numbers(self, strings: Iterable[str]) -> NDArray[np.int32]:
        """Return the number of each string; strings not seen before get the next ones."""
        source = iter(strings)
        found = [np.zeros(0, dtype=np.int32)]
        while batch := list(islice(source, _STRINGS_AT_ONCE)):
            number_of = self._numbers_of(list(dict.fromkeys(batch)))
            found.append(np.array([number_of[string] for string in batch], dtype=np.int32))
        return np.concatenate(found)

    def table(self) -> StringTable:
        """Return the strings seen so far, each at the place of its number."""
        content = np.frombuffer(bytes(self._content), dtype=np.uint8)
        return StringTable(content, self._offsets[: self._count + 1].copy())

    def _numbers_of(self, distinct: list[str]) -> dict[str, int]:
        hashes = np.fromiter(map(hash, distinct), dtype=np.int64, count=len(distinct))
        number_of: dict[str, int] = {}
        fresh: list[int] = []
        fresh_hashes: set[int] = set()
        for place, (string, found) in enumerate(zip(distinct, self._find(hashes).tolist(), strict=True)):
            if found == _FREE and int(hashes[place]) not in fresh_hashes:
                number_of[string] = self._append(string)
                fresh.append(place)
                fresh_hashes.add(int(hashes[place]))
            elif found != _FREE and self._content[self._offsets[found] : self._offsets[found + 1]] == _bytes(string):
                number_of[string] = found
            else:
                if string not in self._clashing:
                    self._clashing[string] = self._append(string)
                number_of[string] = self._clashing[string]
        self._insert(hashes[fresh], np.array([number_of[distinct[place]] for place in fresh], dtype=np.int32))
        return number_of

    def _append(self, string: str) -> int:
        number = self._count
        self._content += _bytes(string)
        self._count += 1
        if self._count >= len(self._offsets):
            self._offsets = _doubled(self._offsets)
            self._hashes = _doubled(self._hashes)
        self._offsets[self._count] = len(self._content)
        return number

    def _find(self, hashes: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the number stored for each hash, or free."""
        numbers = np.full(len(hashes), _FREE, dtype=np.int32)
        looking = np.arange(len(hashes))
        slots = self._first_slot(hashes)
        while len(looking):
            held = self._slots[slots]
            # A free slot ends the search in vain, an equal hash with success; any other string is passed by.
            is_hit = (held != _FREE) & (self._hashes[held] == hashes[looking])
            numbers[looking[is_hit]] = held[is_hit]
            goes_on = (held != _FREE) & ~is_hit
            looking, slots = looking[goes_on], (slots[goes_on] + 1) & (len(self._slots) - 1)
        return numbers

    def _insert(self, hashes: NDArray[np.int64], numbers: NDArray[np.int32]) -> None:
        self._hashes[numbers] = hashes
        if 2 * self._count > len(self._slots):
            self._grow()
        else:
            self._place(hashes, numbers)

    def _grow(self) -> None:
        size = len(self._slots)
        while 2 * self._count > size:
            size *= 2
        self._slots = np.full(size, _FREE, dtype=np.int32)
        is_clashing = np.zeros(self._count, dtype=bool)
        is_clashing[list(self._clashing.values())] = True
        numbers = np.flatnonzero(~is_clashing).astype(np.int32)
        for start in range(0, len(numbers), _STRINGS_AT_ONCE):
            some = numbers[start : start + _STRINGS_AT_ONCE]
            self._place(self._hashes[some], some)

    def _place(self, hashes: NDArray[np.int64], numbers: NDArray[np.int32]) -> None:
        """Put numbers into the next free slot after their home; of several that want one slot, one gets it."""
        slots = self._first_slot(hashes)
        while len(numbers):
            wants = self._slots[slots] == _FREE
            self._slots[slots[wants]] = numbers[wants]
            is_left = self._slots[slots] != numbers
            numbers, slots = numbers[is_left], (slots[is_left] + 1) & (len(self._slots) - 1)

    def _first_slot(self, hashes: NDArray[np.int64]) -> IntArray:
        return hashes & (len(self._slots) - 1)


def _bytes(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")


def _doubled(array: AnyArray) -> AnyArray:
    return np.concatenate([array, np.zeros_like(array)])
