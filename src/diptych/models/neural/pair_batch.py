"""What a siamese network sees in one step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.models.neural.label_pairs import LabelPairs


@dataclass(frozen=True)
class PairBatch:
    """Items with a similar and a dissimilar partner each.

    ``rows`` are three parts of one length: the items, their similar and their dissimilar partners. ``own`` says where
    the similar text of a picture is its own instead of its partner's, ``differs`` where the dissimilar partner is one.
    """

    rows: IntArray
    own: BoolArray
    differs: BoolArray

    @classmethod
    def drawn(cls, items: IntArray, pairs: LabelPairs, rng: np.random.Generator) -> PairBatch:
        """Draw partners for ``items``; half of the pairs across the sides are an item's own."""
        similar = pairs.similar(items, rng)
        dissimilar, differs = pairs.dissimilar(items, rng)
        return cls(np.concatenate([items, similar, dissimilar]), rng.random(len(items)) < 0.5, differs)
