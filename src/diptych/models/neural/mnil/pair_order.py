"""In which order an epoch shows the pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import IntArray


@dataclass(frozen=True)
class PairOrder:
    """Pictures, and the rows of the texts that are shown with each, in random order.

    >>> import numpy as np
    >>> from diptych.models.neural.mnil.pair_order import PairOrder
    >>> order = PairOrder.drawn(np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> sorted(zip(order.pictures.tolist(), map(sorted, order.texts.tolist())))
    [(0, [0, 1]), (1, [2, 3])]
    """

    pictures: IntArray
    texts: IntArray

    @classmethod
    def drawn(cls, picture_of: IntArray, texts_per_picture: int, rng: np.random.Generator) -> PairOrder:
        """Cut each picture's texts, shuffled, into groups; a group that lacks texts is filled from the first ones."""
        shuffled = np.lexsort((rng.random(len(picture_of)), picture_of))
        pictures, starts, counts = np.unique(picture_of[shuffled], return_index=True, return_counts=True)
        n_groups = -(-counts // texts_per_picture)
        owner = np.repeat(np.arange(len(pictures)), n_groups)
        first = np.arange(len(owner)) - np.repeat(np.cumsum(n_groups) - n_groups, n_groups)
        within = first[:, None] * texts_per_picture + np.arange(texts_per_picture)
        rows = shuffled[starts[owner][:, None] + within % counts[owner][:, None]]
        mixed = rng.permutation(len(owner))
        return cls(pictures[owner][mixed], rows[mixed])

    def __len__(self) -> int:
        return len(self.pictures)

    def batches(self, size: int) -> list[PairOrder]:
        """Return equal batches; what is left over waits for another epoch, unless it is everything."""
        whole = min(size, len(self))
        starts = range(0, len(self) - whole + 1, whole)
        return [PairOrder(self.pictures[start : start + whole], self.texts[start : start + whole]) for start in starts]

    def share(self, rank: int, n_ranks: int) -> PairOrder:
        """Return one process's part of a batch."""
        part = slice(rank * len(self) // n_ranks, (rank + 1) * len(self) // n_ranks)
        return PairOrder(self.pictures[part], self.texts[part])
