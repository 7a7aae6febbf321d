"""What was shown where, and what of it was clicked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Impressions:
    """Items shown for queries, by position: how often each was shown there, and how often clicked.

    Columns are arrays of one length. ``queries`` and ``items`` are the different strings, in the order of their first
    appearance; ``query_ids`` and ``item_ids`` say which of them a row is about. Positions count from 1. A row stands
    for ``shown`` searches, so that a log of any length is as small as what differs in it.

    >>> from diptych.collection.learning import Impressions
    >>> seen = Impressions.from_rows([("a dog", "p1", 1, 10, 6), ("a dog", "p2", 2, 10, 1), ("a cat", "p2", 1, 3, 2)])
    >>> seen.queries, seen.items, len(seen), seen.n_clicks
    (('a dog', 'a cat'), ('p1', 'p2'), 3, 9.0)
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    query_ids: IntArray
    item_ids: IntArray
    positions: IntArray
    shown: FloatArray
    clicked: FloatArray

    def __post_init__(self) -> None:
        columns = (self.query_ids, self.item_ids, self.positions, self.shown, self.clicked)
        if len({len(column) for column in columns}) != 1:
            raise InvalidInputError(f"the columns of impressions differ in length: {[len(each) for each in columns]}")
        if len(self) and self.positions.min() < 1:
            raise InvalidInputError(f"positions count from 1, got {int(self.positions.min())}")
        if len(self) and not (self.clicked <= self.shown).all():
            row = int(np.argmax(self.clicked > self.shown))
            raise InvalidInputError(
                f"row {row} was clicked {self.clicked[row]:g} times but shown {self.shown[row]:g} times; "
                "count an item once in a search"
            )

    def __len__(self) -> int:
        return len(self.query_ids)

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[object]]) -> Self:
        """Return the impressions of rows (query, item, position, times shown, times clicked)."""
        columns = list(zip(*rows, strict=True)) or [()] * 5
        queries, query_ids = _interned(columns[0])
        items, item_ids = _interned(columns[1])
        return cls(
            queries,
            items,
            query_ids,
            item_ids,
            np.asarray(columns[2], dtype=np.int64),
            np.asarray(columns[3], dtype=np.float64),
            np.asarray(columns[4], dtype=np.float64),
        )

    @property
    def n_clicks(self) -> float:
        """How often anything was clicked."""
        return float(self.clicked.sum())

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The different (query, item) as one number each, ascending, and which of them each row is about."""
        keys = self.query_ids.astype(np.int64) * max(1, len(self.items)) + self.item_ids
        different, rows = np.unique(keys, return_inverse=True)
        return different, rows.reshape(-1)

    def select(self, rows: AnyArray) -> Impressions:
        """Return some rows, given as numbers or as a mask; the queries and items keep their numbers."""
        return Impressions(
            self.queries,
            self.items,
            self.query_ids[rows],
            self.item_ids[rows],
            self.positions[rows],
            self.shown[rows],
            self.clicked[rows],
        )


def _interned(texts: Sequence[object]) -> tuple[tuple[str, ...], IntArray]:
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(str(text), len(numbers)) for text in texts], dtype=np.int32)
    return tuple(numbers), ids
