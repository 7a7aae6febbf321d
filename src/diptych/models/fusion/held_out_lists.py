"""Judged lists from pairs that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.models.labels import Targets
from diptych.models.pictures import picture_numbers

# As many as tell weights apart; every further one makes each of hundreds of trials slower.
_MOST_PICTURES, _MOST_TEXTS = 200, 200
_FEWEST_PICTURES = 4


@dataclass(frozen=True, eq=False)
class HeldOutLists:
    """Rows to learn from, rows held out with all texts of their pictures, and which of these belong together.

    ``pictures`` has one row for each held-out picture, ``texts`` those of some of their texts; ``grades`` is the
    matrix (pictures, texts) of what is relevant: texts of the same picture, or with labels those that share one.
    """

    train: IntArray
    pictures: IntArray
    texts: IntArray
    grades: FloatArray

    @classmethod
    def of(cls, images: FloatArray, labels: ArrayLike | None, share: float, rng: np.random.Generator) -> HeldOutLists:
        """Hold out a share of the pictures, at most a few hundred."""
        numbers = picture_numbers(images)
        n_pictures = int(numbers.max()) + 1
        wanted = min(round(share * n_pictures), _MOST_PICTURES)
        if not _FEWEST_PICTURES <= wanted <= n_pictures - _FEWEST_PICTURES:
            raise InvalidInputError(
                f"weights cannot be learned from {n_pictures} different pictures, {wanted} of them held out; "
                "give more, or take weights='average'"
            )
        is_out = np.isin(numbers, rng.choice(n_pictures, wanted, replace=False))
        out = np.flatnonzero(is_out)
        _, first = np.unique(numbers[out], return_index=True)
        pictures, texts = out[first], np.sort(rng.permutation(out)[:_MOST_TEXTS])
        return cls(np.flatnonzero(~is_out), pictures, texts, _grades(numbers, labels, pictures, texts))

    def scores(self, matrices: list[FloatArray]) -> tuple[list[AnyArray], list[AnyArray]]:
        """Return the lists of all queries, pictures and texts, and their grades.

        ``matrices`` are the (pictures, texts) scores of each part.
        """
        stacked = np.stack(matrices)
        by_picture = [stacked[:, row] for row in range(len(self.pictures))]
        by_text = [stacked[:, :, column] for column in range(len(self.texts))]
        return by_picture + by_text, [*self.grades, *self.grades.T]


def _grades(numbers: IntArray, labels: ArrayLike | None, pictures: IntArray, texts: IntArray) -> FloatArray:
    if labels is None:
        return np.asarray(numbers[pictures][:, None] == numbers[texts], dtype=np.float64)
    indicator = Targets.from_labels(labels, len(numbers)).indicator
    return np.asarray(indicator[pictures] @ indicator[texts].T > 0, dtype=np.float64)
