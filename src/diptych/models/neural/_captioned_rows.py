"""How the two branches of LDSP learn to rank together: rows with captions, their batches, and the loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.metrics import Relevance, SameLabel, SharedLabel
from diptych.models.neural._layers import StandardView, held_out_rows
from diptych.models.neural._torch import torch_package
from diptych.models.related_rows import RelatedRows, picture_numbers

_SMALLEST = 1e-4
_MOST_HELD_OUT = 1000


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Rows whose texts are in a batch, and one row for each picture in it."""

    texts: IntArray
    pictures: IntArray
    answers: IntArray  # place of the picture each text should find: its own, or with labels one that shares a label
    related: BoolArray  # which pictures are no wrong answers to a text
    text_related: BoolArray
    picture_related: BoolArray

    @classmethod
    def of(cls, rows: IntArray, numbers: IntArray, related: RelatedRows, rng: np.random.Generator) -> CaptionBatch:
        """Make a batch of these rows; ``numbers`` are the pictures of all rows."""
        texts = np.unique(rows)
        _, first = np.unique(numbers[texts], return_index=True)
        pictures = texts[first]
        between = related.matrix(texts, pictures)
        # The largest of random numbers, one for each right answer, is each of them with the same chance.
        answers = np.where(between, rng.random(between.shape), -1.0).argmax(axis=1)
        return cls(texts, pictures, answers, between, related.matrix(texts, texts), related.matrix(pictures, pictures))


def caption_batches(
    rows: IntArray, numbers: IntArray, related: RelatedRows, *, size: int, per_picture: int, rng: np.random.Generator
) -> Iterator[CaptionBatch]:
    """Yield batches that lead every row once: ``size`` texts, each with its picture and ``per_picture`` − 1 others.

    Two texts of one picture may lead in the same batch; none of its texts counts as wrong there.
    """
    shuffled = rng.permutation(rows)
    # The texts of each picture in random order, one picture after the other: a text's followers are a random choice.
    grouped = shuffled[np.argsort(numbers[shuffled], kind="stable")]
    counts = np.bincount(numbers[grouped], minlength=int(numbers.max()) + 1)
    starts = np.cumsum(counts) - counts
    places = np.zeros(len(numbers), dtype=np.intp)
    places[grouped] = np.arange(len(grouped)) - starts[numbers[grouped]]
    for leading in np.array_split(rng.permutation(rows), -(-len(rows) // size)):
        pictures = numbers[leading]
        steps = np.minimum(np.arange(per_picture), counts[pictures][:, None] - 1)
        members = starts[pictures][:, None] + (places[leading][:, None] + steps) % counts[pictures][:, None]
        yield CaptionBatch.of(grouped[members].reshape(-1), numbers, related, rng)


@dataclass(frozen=True)
class StructureLoss:
    """Hinges on distances between unit points, over the largest violations of a batch.

    Of all wrong answers y⁻ to an anchor the ``n_violators`` with the largest [m + d(anchor, right) − d(anchor, y⁻)]₊
    count, zeros included. Texts search pictures with weight ``text_query``, pictures search texts with weight 1. Within
    a side, an anchor's farthest relative must be nearer than what is not related to it.
    """

    margin: float
    n_violators: int
    text_query: float
    image_structure: float
    text_structure: float

    def of(self, images: Any, texts: Any, batch: CaptionBatch) -> Any:
        """Return the loss of unit points, which come in the order of ``batch.pictures`` and ``batch.texts``."""
        torch = torch_package()
        answers, related, text_related, picture_related = (
            torch.from_numpy(values).to(images.device)
            for values in (batch.answers, batch.related, batch.text_related, batch.picture_related)
        )
        between = distances(texts, images)
        right = between.gather(1, answers[:, None])
        loss = self.text_query * self._violations(right, between, related).mean()
        loss = loss + self._violations(right, between[:, answers].T, related[:, answers].T).mean()
        if self.text_structure:
            loss = loss + self.text_structure * self._structure(distances(texts, texts), text_related)
        if self.image_structure:
            loss = loss + self.image_structure * self._structure(distances(images, images), picture_related)
        return loss

    def _structure(self, apart: Any, related: Any) -> Any:
        others = related.clone().fill_diagonal_(fill_value=False)
        farthest = apart.masked_fill(~others, 0).amax(dim=1, keepdim=True)
        counted = others.any(dim=1)
        return (self._violations(farthest, apart, related) * counted).sum() / counted.sum().clamp(min=1)

    def _violations(self, right: Any, apart: Any, related: Any) -> Any:
        """Return for each row the mean of its largest violations."""
        hinges = (self.margin + right - apart).relu().masked_fill(related, 0)
        return hinges.topk(min(self.n_violators, hinges.shape[1]), dim=1).values.mean(dim=1)


def distances(left: Any, right: Any) -> Any:
    """Return the Euclidean distances of unit points; the root stays clear of zero, where its slope is infinite."""
    return ((2 - 2 * left @ right.T).clamp(min=0) + _SMALLEST).sqrt()


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
