"""Queries against a gallery in both directions, encoded by a fitted model and measured; in groups, with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, IntArray
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
            if model.inputs == "features" and not (pairs.has_image_features and pairs.has_text_features):
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

    def all_tied(self) -> EncodedRetrieval:
        """Return the same questions with equal scores for every answer; measures then take their chance level."""
        queries, gallery = (
            {way: np.zeros((len(points), 1)) for way, points in side.items()} for side in (self.queries, self.gallery)
        )
        return EncodedRetrieval(Space("dot"), queries, gallery, self.query_truth, self.gallery_truth)

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


@dataclass(frozen=True)
class QueryGroups:
    """Groups of queries by a number that each has, such as its length or its visualness.

    Group k holds the queries with edges[k] < value ≤ edges[k + 1]; the first also those at its lower edge. The default
    edges are the five groups of visualness of Dong et al. (2018); that bounds belong to the group below them is our
    reading.

    >>> from diptych.protocols import QueryGroups
    >>> groups = QueryGroups()
    >>> groups.of([0.0, 0.2, 0.5, 1.0]).tolist()
    [0, 0, 2, 4]
    >>> groups.means([0.0, 0.2, 0.5, 1.0], [0.1, 0.3, 0.5, 0.7]).tolist()
    [0.2, nan, 0.5, nan, 0.7]
    """

    edges: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or (np.diff(self.edges) <= 0).any():
            raise InvalidInputError(f"edges must be two or more increasing numbers, got {self.edges}")

    def of(self, values: ArrayLike) -> IntArray:
        """Return the group of each value; one outside the edges is an error."""
        numbers = np.asarray(values, dtype=np.float64)
        if not ((numbers >= self.edges[0]) & (numbers <= self.edges[-1])).all():
            raise InvalidInputError(f"values must lie in {self.edges[0]:g}..{self.edges[-1]:g}; give wider edges")
        return np.maximum(np.searchsorted(self.edges, numbers, side="left") - 1, 0)

    def means(self, values: ArrayLike, scores: ArrayLike) -> FloatArray:
        """Return the mean score of each group, queries without a score left out; NaN for an empty group."""
        groups, numbers = self.of(values), np.asarray(scores, dtype=np.float64)
        if groups.shape != numbers.shape:
            raise InvalidInputError(f"each query needs a value and a score, got {groups.size} and {numbers.size}")
        known = ~np.isnan(numbers)
        n_groups = len(self.edges) - 1
        counts = np.bincount(groups[known], minlength=n_groups)
        sums = np.bincount(groups[known], weights=numbers[known], minlength=n_groups)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def with_noise(judgements: Any, fold: int, *, seed: int = 0) -> scipy.sparse.csr_array:
    """Return the judgements with ``fold`` times as many irrelevant items for every query, drawn at random.

    A query with n judged items gets fold·n more, of grade 0, drawn without replacement from the items that were judged
    for other queries and not for this one; where there are fewer, all of them. Use it to see how a method does when a
    search engine has not filtered its candidates first, over several seeds. One seed draws nested sets: the noise of
    fold 1 is part of that of fold 2.

    Parameters
    ----------
    judgements :
        A SciPy sparse matrix of grades, queries × gallery, whose stored entries are the judged items, zeros included.

    References
    ----------
    Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018, figure 7, which goes
    from 1 to 10; how often the draws were repeated is not said.

    >>> from scipy import sparse
    >>> from diptych.metrics import GradedRelevance
    >>> from diptych.protocols import with_noise
    >>> judged = sparse.csr_array(([3, 2, 1], ([0, 1, 1], [0, 1, 2])), shape=(2, 3))
    >>> GradedRelevance(with_noise(judged, 1), judged_only=True).judge(0).candidates.size
    2
    """
    if fold < 0:
        raise InvalidInputError(f"fold must be 0 or more, got {fold}")
    if not scipy.sparse.issparse(judgements):
        raise InvalidInputError("judgements must be a sparse matrix, whose stored entries are the judged items")
    matrix = scipy.sparse.csr_array(judgements)
    judged_anywhere = np.unique(matrix.indices)
    columns, grades, ends = [], [], [0]
    for query in range(matrix.shape[0]):
        stored = slice(matrix.indptr[query], matrix.indptr[query + 1])
        own = matrix.indices[stored]
        others = np.setdiff1d(judged_anywhere, own)
        drawn = np.random.default_rng([seed, query]).permutation(others)[: fold * len(own)]
        columns.append(np.concatenate([own, drawn]))
        grades.append(np.concatenate([matrix.data[stored], np.zeros(len(drawn), dtype=matrix.dtype)]))
        ends.append(ends[-1] + len(columns[-1]))
    noisy = scipy.sparse.csr_array((np.concatenate(grades), np.concatenate(columns), ends), shape=matrix.shape)
    noisy.sort_indices()
    return noisy
