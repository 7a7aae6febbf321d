"""Pairs that are held out from learning, what stands beside them without a partner, and how well they are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, unit_rows
from diptych.data import Pairs
from diptych.data.item_sequences import is_features
from diptych.metrics import AP
from diptych.models import CrossModalModel

if TYPE_CHECKING:
    from diptych.protocols import TwoWayEvaluation
    from diptych.retriever.base import RetrieverBase

# With as many held-out pictures one part is enough; fewer are made up for by holding out every picture once.
ENOUGH_HELD_OUT = 200
MAX_UNPAIRED = 2000

UnpairedRows = tuple[FloatArray, FloatArray]
"""Features of pictures without texts, and of texts without pictures."""


class UnpairedItems:
    """Pictures without texts and texts without pictures, of many a sample, with their features.

    Parameters
    ----------
    images, texts :
        Raw items, or rows of features.
    """

    def __init__(self, images: Sequence[Any] = (), texts: Sequence[Any] = ()) -> None:
        self.images, self.texts = _sampled(images), _sampled(texts)
        self._features: dict[tuple[str, str], UnpairedRows] = {}

    def featured(self, retriever: RetrieverBase) -> UnpairedRows:
        """Return the features of both sides by the encoders of a retriever; they are made once for each of them."""
        key = retriever.image_fingerprint, retriever.text_fingerprint
        if key not in self._features:
            self._features[key] = self._image_features(retriever), self._text_features(retriever)
        return self._features[key]

    def _image_features(self, retriever: RetrieverBase) -> FloatArray:
        if is_features(self.images):
            return np.asarray(self.images)
        found: dict[int, AnyArray] = {}
        for batch in retriever.stream_image_features(self.images) if len(self.images) else ():
            found |= zip(batch.rows, batch.features, strict=True)
        # What cannot be read any more is left out.
        rows = sorted(found)
        self.images = [self.images[row] for row in rows]
        return np.stack([found[row] for row in rows]) if rows else np.zeros((0, 1))

    def _text_features(self, retriever: RetrieverBase) -> FloatArray:
        if is_features(self.texts):
            return np.asarray(self.texts)
        # What people typed is kept in no cache.
        alike = copy(retriever)
        alike.cache = False
        return alike.text_features(self.texts) if len(self.texts) else np.zeros((0, 1))


def _sampled(items: Sequence[Any]) -> Any:
    if len(items) <= MAX_UNPAIRED:
        return items
    rows = np.sort(np.random.default_rng(0).permutation(len(items))[:MAX_UNPAIRED])
    return np.asarray(items)[rows] if is_features(items) else [items[row] for row in rows]


def held_out_parts(pairs: Pairs, share: float, seed: int, *, once: bool = False) -> Iterator[tuple[Pairs, Pairs]]:
    """Yield (learn from, hold out) by pictures, whose texts stay with them: one part of many, or folds of few.

    ``once`` asks for one part of few as well.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.retriever.held_out_pairs import held_out_parts
    >>> [(a.n_images, b.n_images) for a, b in held_out_parts(Pairs(np.eye(12), np.eye(12)), 0.25, seed=0)]
    [(9, 3), (9, 3), (9, 3), (9, 3)]
    """
    if once or pairs.n_images * share >= ENOUGH_HELD_OUT:
        yield pairs.split(share, seed=seed)
        return
    folds = np.arange(pairs.n_images) % max(2, round(1 / share))
    folds = folds[np.random.default_rng(seed).permutation(pairs.n_images)]
    for fold in np.unique(folds):
        yield pairs.select(folds != fold), pairs.select(folds == fold)


def telling_rows(described: FloatArray, others: FloatArray, count: int) -> list[int]:
    """Return the rows of ``others`` whose descriptions would stand for most of them: greedy facility location.

    A row is worth how much nearer, by cosine, it brings a described one to all the others.

    >>> import numpy as np
    >>> from diptych.retriever.held_out_pairs import telling_rows
    >>> angles = np.array([0.0, 0.1, 1.5, 1.6, 1.7])
    >>> rows = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> telling_rows(rows[:1], rows[1:], 1)
    [2]
    """
    rows = unit_rows(others)
    alike = rows @ rows.T
    nearest = (rows @ unit_rows(described).T).max(axis=1, initial=-1)
    chosen: list[int] = []
    for _ in range(min(count, len(rows))):
        chosen.append(int(np.maximum(alike - nearest[:, None], 0).sum(axis=0).argmax()))
        nearest = np.maximum(nearest, alike[chosen[-1]])
    return chosen


def evaluate_among(model: CrossModalModel, pairs: Pairs, more_images: FloatArray) -> TwoWayEvaluation:
    """Evaluate a model on pairs of features by AP, where texts look for their pictures among others as well.

    The others have no labels: where labels say what is relevant they stay out.
    """
    from diptych.protocols import EncodedRetrieval, evaluate_model

    if pairs.labels is not None or not len(more_images):
        return evaluate_model(model, pairs)
    images, texts = model.encode_images(pairs.images), model.encode_texts(pairs.texts)
    queries: dict[Any, AnyArray] = {"image_query": images, "text_query": texts}
    truth: dict[Any, AnyArray] = {"image_query": np.arange(len(images)), "text_query": pairs.owners}
    among = queries | {"image_query": np.concatenate([images, model.encode_images(more_images)])}
    known = truth | {"image_query": np.concatenate([truth["image_query"], -1 - np.arange(len(more_images))])}
    return EncodedRetrieval(model.space, queries, among, truth, known).evaluate([AP()])


def precision_per_picture(evaluation: TwoWayEvaluation, owners: IntArray) -> FloatArray:
    """Return the AP of each picture and of its texts, averaged."""
    of_images = np.asarray(evaluation.image_query.values[AP()])
    of_texts = np.nan_to_num(np.asarray(evaluation.text_query.values[AP()]))
    counts = np.bincount(owners, minlength=len(of_images))
    means = np.bincount(owners, weights=of_texts, minlength=len(of_images)) / np.maximum(counts, 1)
    return np.asarray((of_images + means) / 2)
