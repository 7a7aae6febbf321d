"""A few partners for every left item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.models.pairwise.losses import RowLoss
from diptych.models.pairwise.pair_sums import PairSums

_BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class SampledPairs:
    """Left item i is compared with the right items ``partners[i]``, the first of which belongs to it."""

    partners: IntArray

    @classmethod
    def unlabelled(cls, n_rows: int, ratio: int, rng: np.random.Generator) -> SampledPairs:
        """Pair each item with its own partner and with ``ratio`` others, drawn uniformly with replacement."""
        own = np.arange(n_rows)[:, None]
        others = rng.integers(n_rows - 1, size=(n_rows, ratio))
        # Skipping the own row keeps the draw uniform over all others.
        return cls(np.hstack([own, others + (others >= own)]))

    @property
    def count(self) -> int:
        """The number of pairs."""
        return int(self.partners.size)

    def reduce(self, left: FloatArray, right: FloatArray, loss: RowLoss) -> PairSums:
        """Score every pair by the inner product of its points and sum loss and derivatives."""
        value, residual = loss(self._scores(left, right), slice(0, len(left)))
        ends = np.arange(len(left) + 1) * self.partners.shape[1]
        shape = (len(left), len(right))
        matrix = csr_array((residual.ravel().astype(left.dtype, copy=False), self.partners.ravel(), ends), shape=shape)
        return PairSums(value, matrix @ right, matrix.T @ left)

    def _scores(self, left: FloatArray, right: FloatArray) -> FloatArray:
        scores = np.empty(self.partners.shape, dtype=left.dtype)
        for rows in row_blocks(len(left), _BLOCK_NUMBERS // (left.shape[1] * self.partners.shape[1])):
            scores[rows] = np.einsum("ik,imk->im", left[rows], right[self.partners[rows]])
        return scores
