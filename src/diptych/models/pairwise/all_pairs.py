"""Every left item with every right item, block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.models.pairwise.losses import RowLoss
from diptych.models.pairwise.pair_sums import PairSums

# Small enough for a block and its derivatives to stay in cache, large enough for the products to be worth their call.
_BLOCK_SCORES = 1 << 18


@dataclass(frozen=True)
class AllPairs:
    """All n² pairs of n aligned rows; never more than a block of their scores exists."""

    n_rows: int

    @property
    def count(self) -> int:
        """The number of pairs."""
        return self.n_rows**2

    def reduce(self, left: FloatArray, right: FloatArray, loss: RowLoss) -> PairSums:
        """Score every pair by the inner product of its points and sum loss and derivatives."""
        value = 0.0
        by_left, by_right = np.zeros(left.shape), np.zeros(right.shape)
        for rows in row_blocks(len(left), _BLOCK_SCORES // len(right)):
            loss_value, residual = loss(left[rows] @ right.T, rows)
            residual = residual.astype(left.dtype, copy=False)
            value += loss_value
            by_left[rows] = residual @ right
            by_right += residual.T @ left[rows]
        return PairSums(value, by_left, by_right)
