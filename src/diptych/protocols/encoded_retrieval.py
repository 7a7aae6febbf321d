"""Queries and gallery as points of a space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from diptych.arrays import AnyArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import ConfusionMatrix, Curve, Evaluation, Measure, SameLabel, SharedLabel, Ties, evaluate
from diptych.models import CrossModalModel
from diptych.protocols.retrieval import Retrieval
from diptych.protocols.two_way_evaluation import TwoWayEvaluation
from diptych.space import DIRECTIONS, Direction, Space

Relevant = Literal["auto", "label", "instance"]
Gallery = Literal["view", "unified"]
Sides = dict[Direction, AnyArray]

_OTHER: dict[Direction, Direction] = {"image_query": "text_query", "text_query": "image_query"}


@dataclass(frozen=True)
class EncodedRetrieval:
    """The points of queries and gallery, and what must agree for two items to be relevant to each other.

    Under each direction stands the side that asks in it: pictures under ``image_query``, texts under ``text_query``.
    Use it where the same points are measured several times.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.metrics import AP
    >>> from diptych.models import CCA
    >>> from diptych.protocols import EncodedRetrieval, Retrieval
    >>> rows = np.random.default_rng(0).normal(size=(30, 3))
    >>> pairs = Pairs(rows, rows)
    >>> encoded = EncodedRetrieval.of(CCA().fit(rows, rows), Retrieval(pairs, pairs))
    >>> encoded.queries["image_query"].shape, encoded.evaluate([AP()]).average(AP())
    ((30, 3), 1.0)
    """

    space: Space
    queries: Sides
    gallery: Sides
    query_truth: Sides
    gallery_truth: Sides

    @classmethod
    def of(
        cls, model: CrossModalModel, retrieval: Retrieval, *, gallery: Gallery = "view", relevant: Relevant = "auto"
    ) -> EncodedRetrieval:
        """Encode queries and gallery by a fitted model, as `evaluate_retrieval` says."""
        asked, searched = retrieval.queries, retrieval.gallery
        for pairs in (asked, searched):
            if not pairs.has_image_features or not pairs.has_text_features:
                raise InvalidInputError("the pairs hold raw items: encode them first (diptych.encoders.encode_splits)")
        query_points = _points(model, asked)
        found_points = _gallery_points(model, searched, gallery, query_points if searched is asked else None)
        query_truth, found_truth = _truth(asked, relevant), _truth(searched, relevant)
        if gallery == "unified":
            found_truth["image_query"] = found_truth["text_query"]
        return cls(model.space, query_points, found_points, query_truth, found_truth)

    def evaluate(
        self, measures: Sequence[Measure | Curve], *, ties: Ties = "expected", memory: int = 1 << 28
    ) -> TwoWayEvaluation:
        """Measure both directions."""
        results: dict[Direction, Evaluation] = {}
        for way in DIRECTIONS:
            kind = SameLabel if self.query_truth[way].ndim == 1 else SharedLabel
            results[way] = evaluate(
                self.queries[way],
                self.gallery[_OTHER[way]],
                self.space,
                kind(self.query_truth[way], self.gallery_truth[_OTHER[way]]),
                measures,
                direction=way,
                ties=ties,
                memory=memory,
            )
        return TwoWayEvaluation(results["image_query"], results["text_query"])

    def confusion(self, way: Direction) -> ConfusionMatrix:
        """Return which class the rankings of each class speak for; for one label per item."""
        return ConfusionMatrix.from_points(
            self.queries[way],
            self.gallery[_OTHER[way]],
            self.space,
            self.query_truth[way],
            self.gallery_truth[_OTHER[way]],
            direction=way,
        )


def _points(model: CrossModalModel, pairs: Pairs) -> Sides:
    return {"image_query": model.encode_images(pairs.images), "text_query": model.encode_texts(pairs.texts)}


def _gallery_points(model: CrossModalModel, pairs: Pairs, gallery: Gallery, known: Sides | None) -> Sides:
    if gallery == "view":
        return _points(model, pairs) if known is None else known
    if gallery != "unified":
        raise InvalidInputError(f"gallery must be one of {', '.join(get_args(Gallery))}, got {gallery!r}")
    encode_pairs = getattr(model, "encode_pairs", None)
    if encode_pairs is None:
        raise InvalidInputError(
            f"{type(model).__name__} has no code for both sides of a pair; use gallery='view', or a hashing method"
        )
    images, texts, _ = pairs.aligned()
    points = encode_pairs(images, texts)
    return {"image_query": points, "text_query": points}


def _truth(pairs: Pairs, relevant: Relevant) -> Sides:
    """Return for each side what must agree for two items to be relevant to each other."""
    if relevant not in get_args(Relevant):
        raise InvalidInputError(f"relevant must be one of {', '.join(get_args(Relevant))}, got {relevant!r}")
    if relevant == "label" and pairs.labels is None:
        raise InvalidInputError("these pairs have no labels: evaluate with relevant='instance'")
    if relevant == "instance" or pairs.labels is None or pairs.text_labels is None:
        return {"image_query": pairs.ids, "text_query": pairs.ids[pairs.owners]}
    return {"image_query": pairs.labels, "text_query": pairs.text_labels}
