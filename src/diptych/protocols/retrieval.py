"""Queries against a gallery in both directions: encoded by a fitted model, and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from diptych.arrays import AnyArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, ConfusionMatrix, Curve, Evaluation, Measure, SameLabel, SharedLabel, Ties, evaluate
from diptych.models import CrossModalModel
from diptych.space import DIRECTIONS, Direction, Space, opposite

Relevant = Literal["auto", "label", "instance"]
Gallery = Literal["view", "unified"]
ArrayByDirection = dict[Direction, AnyArray]


@dataclass(frozen=True)
class Retrieval:
    """Queries and the gallery that answers them: pictures of one ask for texts of the other, and texts for pictures.

    Queries and gallery may be the same pairs, as in the standard protocol, or a query set and a database without a
    common item, as in the extendable one.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import Retrieval
    >>> pairs = Pairs(np.eye(6), np.eye(6), labels=np.repeat([0, 1], 3))
    >>> retrieval = Retrieval(pairs.select([0, 3]), pairs.select([1, 2, 4, 5]))
    >>> retrieval.queries.n_images, retrieval.gallery.n_images
    (2, 4)
    """

    queries: Pairs
    gallery: Pairs


@dataclass(frozen=True)
class TwoWayEvaluation:
    """The same measures for image queries (searching texts) and text queries (searching images)."""

    image_query: Evaluation
    text_query: Evaluation

    def __getitem__(self, direction: Direction) -> Evaluation:
        return self.image_query if direction == "image_query" else self.text_query

    def average(self, measure: Measure) -> float:
        """Return the mean of the two directions, which is what tables print as "average"."""
        return (self.image_query.mean[measure] + self.text_query.mean[measure]) / 2

    def chance(self, measure: Measure) -> float:
        """Return the exact chance level of the average."""
        return (self.image_query.chance[measure] + self.text_query.chance[measure]) / 2


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
    queries: ArrayByDirection
    gallery: ArrayByDirection
    query_truth: ArrayByDirection
    gallery_truth: ArrayByDirection

    @classmethod
    def of(
        cls, model: CrossModalModel, retrieval: Retrieval, *, gallery: Gallery = "view", relevant: Relevant = "auto"
    ) -> EncodedRetrieval:
        """Encode queries and gallery by a fitted model, as `evaluate_retrieval` says."""
        queries, items = retrieval.queries, retrieval.gallery
        for pairs in (queries, items):
            if not pairs.has_image_features or not pairs.has_text_features:
                raise InvalidInputError("the pairs hold raw items: encode them first (diptych.encoders.encode_splits)")
        query_points = encode_sides(model, queries)
        found_points = _gallery_points(model, items, gallery, query_points if items is queries else None)
        query_truth, found_truth = relevance_labels(queries, relevant), relevance_labels(items, relevant)
        if gallery == "unified":
            found_truth["image_query"] = found_truth["text_query"]
        return cls(model.space, query_points, found_points, query_truth, found_truth)

    def evaluate(
        self, measures: Sequence[Measure | Curve], *, ties: Ties = "expected", memory: int = 1 << 28
    ) -> TwoWayEvaluation:
        """Measure both directions."""
        results = {}
        for way in DIRECTIONS:
            asked, found, relevance = self.queries[way], self.gallery[opposite(way)], self.relevance(way)
            results[way] = evaluate(
                asked, found, self.space, relevance, measures, direction=way, ties=ties, memory=memory
            )
        return TwoWayEvaluation(**results)

    def relevance(self, way: Direction) -> SameLabel | SharedLabel:
        """Return who is relevant to whom."""
        asked, found = self.query_truth[way], self.gallery_truth[opposite(way)]
        return SameLabel(asked, found) if asked.ndim == 1 else SharedLabel(asked, found)

    def confusion(self, way: Direction) -> ConfusionMatrix:
        """Return which class the rankings of each class speak for; for one label per item."""
        return ConfusionMatrix.from_points(
            self.queries[way],
            self.gallery[opposite(way)],
            self.space,
            self.query_truth[way],
            self.gallery_truth[opposite(way)],
            direction=way,
        )


def encode_sides(model: CrossModalModel, pairs: Pairs) -> ArrayByDirection:
    """Return the points of the pictures, which are image queries, and of the texts."""
    return {"image_query": model.encode_images(pairs.images), "text_query": model.encode_texts(pairs.texts)}


def _gallery_points(
    model: CrossModalModel, pairs: Pairs, gallery: Gallery, known: ArrayByDirection | None
) -> ArrayByDirection:
    if gallery == "view":
        return encode_sides(model, pairs) if known is None else known
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


def relevance_labels(pairs: Pairs, relevant: Relevant) -> ArrayByDirection:
    """Return for each side what must agree for two items to be relevant to each other."""
    if relevant not in get_args(Relevant):
        raise InvalidInputError(f"relevant must be one of {', '.join(get_args(Relevant))}, got {relevant!r}")
    if relevant == "label" and pairs.labels is None:
        raise InvalidInputError("these pairs have no labels: evaluate with relevant='instance'")
    if relevant == "instance" or pairs.labels is None or pairs.text_labels is None:
        return {"image_query": pairs.ids, "text_query": pairs.ids[pairs.owners]}
    return {"image_query": pairs.labels, "text_query": pairs.text_labels}


def evaluate_model(
    model: CrossModalModel,
    pairs: Pairs,
    measures: Sequence[Measure | Curve] = (AP(),),
    *,
    relevant: Relevant = "auto",
    ties: Ties = "expected",
    memory: int = 1 << 28,
) -> TwoWayEvaluation:
    """Evaluate a fitted model in both directions on pairs it has not seen.

    ``relevant="label"`` counts what shares a label with the query, ``"instance"`` only what belongs to the same
    picture; ``"auto"`` chooses labels when there are some. The query's own partner stays in the gallery, as in the
    papers.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.metrics import AP
    >>> from diptych.models import CCA
    >>> from diptych.protocols import evaluate_model
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(60, 4))
    >>> pairs = Pairs(texts @ rng.normal(size=(4, 6)), texts)
    >>> model = CCA(regularization=1e-6).fit(*pairs.select(range(40)).aligned())
    >>> round(evaluate_model(model, pairs.select(range(40, 60))).average(AP()), 2)
    1.0
    """
    return evaluate_retrieval(model, Retrieval(pairs, pairs), measures, relevant=relevant, ties=ties, memory=memory)


def evaluate_retrieval(
    model: CrossModalModel,
    retrieval: Retrieval,
    measures: Sequence[Measure | Curve] = (AP(),),
    *,
    gallery: Gallery = "view",
    relevant: Relevant = "auto",
    ties: Ties = "expected",
    memory: int = 1 << 28,
) -> TwoWayEvaluation:
    """Evaluate a fitted model in both directions, queries against a gallery of their own.

    ``gallery="view"`` searches the other side alone: pictures ask for texts and texts for pictures. With ``"unified"``
    an item of the gallery is known by both sides, and its code uses both (``encode_pairs`` of hashing methods), which
    is the other convention of papers on hashing. ``relevant="instance"`` counts what belongs to the picture with the
    same id; otherwise as in `evaluate_model`.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.metrics import AP
    >>> from diptych.models import CCA
    >>> from diptych.protocols import Retrieval, evaluate_retrieval
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(60) % 3
    >>> texts = 5 * np.eye(3)[labels] + rng.normal(size=(60, 3))
    >>> pairs = Pairs(texts @ rng.normal(size=(3, 6)), texts, labels=labels)
    >>> model = CCA().fit(*pairs.select(range(40)).aligned())
    >>> result = evaluate_retrieval(model, Retrieval(pairs.select(range(40, 60)), pairs.select(range(40))))
    >>> bool(result.average(AP()) > 0.9)
    True
    """
    encoded = EncodedRetrieval.of(model, retrieval, gallery=gallery, relevant=relevant)
    return encoded.evaluate(measures, ties=ties, memory=memory)
