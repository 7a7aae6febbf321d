"""Batches in which a picture meets several of its texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.models.related_rows import RelatedRows


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Rows whose texts are in a batch, and one row for each picture in it.

    ``answers[t]`` is the picture, by its place in the batch, that text t should find: its own, or with labels one that
    shares a label, drawn at random. ``related`` says which pictures are no wrong answers to a text, ``text_related``
    and ``picture_related`` the same within each side.
    """

    texts: IntArray
    pictures: IntArray
    answers: IntArray
    related: BoolArray
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
        return cls(
            texts,
            pictures,
            answers,
            between,
            related.matrix(texts, texts),
            related.matrix(pictures, pictures),
        )


def caption_batches(
    rows: IntArray, numbers: IntArray, related: RelatedRows, *, size: int, per_picture: int, rng: np.random.Generator
) -> Iterator[CaptionBatch]:
    """Yield batches that lead every row once: ``size`` texts, each with its picture and others of the picture's texts.

    A text brings ``per_picture`` − 1 others, or as many as there are. Two texts of one picture may lead in the same
    batch; none of its texts counts as wrong there.
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
