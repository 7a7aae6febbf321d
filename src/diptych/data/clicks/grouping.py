"""Which triads belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diptych.arrays import IntArray


@dataclass(frozen=True)
class Grouping:
    """The triads of every query, or of every image: group ``g`` holds ``rows[offsets[g]:offsets[g + 1]]``.

    Within a group the triads keep the order of the log.

    >>> from diptych.data.clicks import ClickLog
    >>> log = ClickLog.from_triads(["cat", "dog", "cat"], ["1", "1", "2"], [3, 1, 2])
    >>> by_query = log.by_query()
    >>> [log.image_ids[rows].tolist() for rows in by_query]
    [[0, 1], [0]]
    >>> by_query[0]
    array([0, 2])
    """

    offsets: IntArray
    rows: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, group: int) -> IntArray:
        if not 0 <= group < len(self):
            raise IndexError(f"group {group} of {len(self)}")
        return self.rows[self.offsets[group] : self.offsets[group + 1]]

    def __iter__(self) -> Iterator[IntArray]:
        return (self[group] for group in range(len(self)))
