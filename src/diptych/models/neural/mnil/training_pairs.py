"""What a training learns from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.models.neural.mnil.pair_order import PairOrder


@dataclass(frozen=True)
class TrainingPairs:
    """Pictures (or features), each once, and texts that say which picture they describe.

    ``labels`` is the 0/1 indicator of each text's classes where sharing one makes items relevant to each other, and
    None where only the own picture is.
    """

    pictures: AnyArray
    picture_of: IntArray
    codes: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: FloatArray | None

    def __len__(self) -> int:
        return len(self.picture_of)

    def parted(self, share: float, most: int, rng: np.random.Generator) -> tuple[TrainingPairs, TrainingPairs | None]:
        """Return (the rest, the pairs of a ``share`` of the pictures but at ``most`` so many), drawn at random.

        A single picture is not worth holding out: then the second part is None.
        """
        n_held_out = min(int(share * len(self.pictures)), most)
        if n_held_out < 2:
            return self, None
        drawn = rng.permutation(len(self.pictures))
        return self.of_pictures(drawn[n_held_out:]), self.of_pictures(drawn[:n_held_out])

    def of_pictures(self, chosen: IntArray) -> TrainingPairs:
        """Return the pairs of the chosen pictures; the pictures themselves are not copied."""
        rows = np.flatnonzero(np.isin(self.picture_of, chosen))
        labels = None if self.labels is None else self.labels[rows]
        return TrainingPairs(self.pictures, self.picture_of[rows], self.codes[rows], self.lengths[rows], labels)

    def order(self, texts_per_picture: int, rng: np.random.Generator) -> PairOrder:
        """Return one epoch's order: every text once, those of a picture side by side in groups."""
        return PairOrder.drawn(self.picture_of, texts_per_picture, rng)
