"""The distinct sets of labels among some rows, and which of them have a label in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class LabelSets:
    """Row i has set ``set_of[i]``; sets g and h share a label where ``shares[g, h]``.

    Rows are many, distinct sets are few: whatever depends on labels alone is computed once for each two sets.
    """

    set_of: IntArray
    shares: BoolArray

    @classmethod
    def of(cls, indicator: FloatArray) -> LabelSets:
        """Group the rows of a 0/1 matrix."""
        sets, set_of = np.unique(indicator, axis=0, return_inverse=True)
        shares = sets @ sets.T > 0
        if shares.all():
            raise InvalidInputError("every two rows share a label: there is nothing to tell apart")
        return cls(set_of.reshape(-1), shares)

    @property
    def matched(self) -> float:
        """The share of all pairs of rows that have a label in common."""
        counts = np.bincount(self.set_of, minlength=len(self.shares))
        return float(counts @ self.shares @ counts) / len(self.set_of) ** 2

    def signs(self, rows: slice) -> FloatArray:
        """Return z of these rows with all rows: +1 where they share a label, −1 where not."""
        return np.where(self.shares[self.set_of[rows]][:, self.set_of], 1.0, -1.0)

    def sign_moment(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        """Return AᵀZB through the sums of each set: Z has one value for each two sets."""
        image_sums, text_sums = self._sums(images), self._sums(texts)
        return np.asarray(image_sums.T @ np.where(self.shares, 1.0, -1.0) @ text_sums)

    def sample(self, ratio: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw for each row one that shares a label, itself included, and ``ratio`` that do not.

        The second array counts each draw: 0 where a row shares a label with all others, so that none can be drawn.
        """
        partners = np.zeros((len(self.set_of), ratio + 1), dtype=np.intp)
        counts = np.ones(partners.shape)
        for number, shared in enumerate(self.shares):
            rows = np.flatnonzero(self.set_of == number)
            same = shared[self.set_of]
            partners[rows, 0] = rng.choice(np.flatnonzero(same), size=len(rows))
            if same.all():
                counts[rows, 1:] = 0
            else:
                partners[rows, 1:] = rng.choice(np.flatnonzero(~same), size=(len(rows), ratio))
        return partners, counts

    def _sums(self, rows: FloatArray) -> FloatArray:
        members = csr_array(
            (np.ones(len(rows)), (self.set_of, np.arange(len(rows)))), shape=(len(self.shares), len(rows))
        )
        return np.asarray(members @ rows)
