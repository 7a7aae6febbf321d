"""What one batch of queries says about the points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RankingStep:
    """The mean loss of a batch of queries, its slope at their points, and at the points of the rows they were told of.

    ``gallery`` may name a row several times; its slopes add up.
    """

    loss: float
    query_slopes: FloatArray
    gallery: IntArray
    gallery_slopes: FloatArray

    def __add__(self, other: RankingStep) -> RankingStep:
        """Add the loss of the same queries under another term."""
        return RankingStep(
            self.loss + other.loss,
            np.asarray(self.query_slopes + other.query_slopes),
            np.concatenate([self.gallery, other.gallery]),
            np.concatenate([self.gallery_slopes, other.gallery_slopes]),
        )

    def scaled(self, factor: float) -> RankingStep:
        """Return the same with the loss multiplied."""
        return RankingStep(
            factor * self.loss,
            np.asarray(factor * self.query_slopes),
            self.gallery,
            np.asarray(factor * self.gallery_slopes),
        )
