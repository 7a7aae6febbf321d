"""Pictures with texts, parted for training and for judging it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.metrics import Relevance, SameLabel, SharedLabel
from diptych.models.neural.held_out import held_out_rows
from diptych.models.neural.standard_view import StandardView
from diptych.models.pictures import picture_numbers
from diptych.models.related_rows import RelatedRows

_MOST_HELD_OUT = 1000


@dataclass(frozen=True, eq=False)
class CaptionedRows:
    """Aligned rows, the number of each row's picture, which rows are related, and which are held out.

    A picture is held out with all its texts or not at all. With labels, only rows that have one are used.
    """

    images: StandardView
    texts: StandardView
    numbers: IntArray
    related: RelatedRows
    indicator: FloatArray | None
    train: IntArray
    held_out: IntArray

    @classmethod
    def of(
        cls,
        images: FloatArray,
        texts: FloatArray,
        indicator: FloatArray | None,
        *,
        validation: float,
        rng: np.random.Generator,
    ) -> CaptionedRows:
        """Measure both sides, find the pictures, and hold out a share of them."""
        views = StandardView.of(images, name="images"), StandardView.of(texts, name="texts")
        numbers = picture_numbers(images)
        related = RelatedRows.of_numbers(numbers) if indicator is None else RelatedRows.of_marks(indicator)
        known = related.known
        pictures, first = np.unique(numbers[known], return_index=True)
        marks = np.ones((len(pictures), 1)) if indicator is None else indicator[known[first]]
        _, chosen = held_out_rows(marks, min(validation, _MOST_HELD_OUT / len(pictures)), rng)
        out = np.isin(numbers[known], pictures[chosen])
        return cls(*views, numbers, related, indicator, known[~out], known[out])

    @property
    def held_out_pictures(self) -> IntArray:
        """One row for each picture that is held out."""
        _, first = np.unique(self.numbers[self.held_out], return_index=True)
        return np.asarray(self.held_out[first])

    def relevance(self, queries: IntArray, gallery: IntArray) -> Relevance:
        """Return which rows of ``gallery`` are right answers to ``queries``."""
        marks: AnyArray = self.numbers if self.indicator is None else self.indicator
        kind = SameLabel if self.indicator is None else SharedLabel
        return kind(marks[queries], marks[gallery])
