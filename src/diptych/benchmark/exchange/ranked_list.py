"""The ranking of one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class RankedList:
    """What one query found: names of items and their scores, larger is better.

    >>> from diptych.benchmark.exchange import RankedList
    >>> found = RankedList.of("q1", {"a": 0.5, "b": 0.9, "c": 0.5})
    >>> found.in_order().items.tolist()
    ['b', 'c', 'a']
    """

    query: str
    items: AnyArray
    scores: FloatArray

    def __post_init__(self) -> None:
        if self.items.shape != self.scores.shape or self.items.ndim != 1:
            raise InvalidInputError(
                f"query {self.query!r} has {self.items.size} items and {self.scores.size} scores; give one for each"
            )
        if not np.isfinite(self.scores).all():
            raise InvalidInputError(f"the scores of query {self.query!r} hold NaN or infinity; check its points")
        if len(np.unique(self.items)) != len(self.items):
            raise InvalidInputError(f"query {self.query!r} ranks an item more than once; keep its best line only")

    @classmethod
    def of(cls, query: str, scores: Mapping[str, float]) -> RankedList:
        """Return the ranking of items by their scores, given by name."""
        return cls(query, np.array([*scores], dtype=str), np.array([*scores.values()], dtype=np.float64))

    def in_order(self, *, single_precision: bool = False) -> RankedList:
        """Return the list best first; of equal scores, the item whose name is later in the alphabet comes first.

        That is trec_eval's rule, whatever the ranks in a file say. trec_eval also keeps scores in single precision, so
        that scores which differ only beyond it are equal there; ``single_precision`` does the same.
        """
        scores = self.scores.astype(np.float32) if single_precision else self.scores
        order = np.lexsort((self.items, scores))[::-1]
        return RankedList(self.query, self.items[order], self.scores[order])
