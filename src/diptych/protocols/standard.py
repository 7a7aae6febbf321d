"""The standard protocol: every item of one side is a query, the whole other side is the gallery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, Curve, Evaluation, Measure, SameLabel, SharedLabel, evaluate
from diptych.models import CrossModalModel
from diptych.space import DIRECTIONS, Direction

Relevant = Literal["auto", "label", "instance"]


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


def evaluate_model(
    model: CrossModalModel,
    pairs: Pairs,
    measures: Sequence[Measure | Curve] = (AP(),),
    *,
    relevant: Relevant = "auto",
    ties: Literal["expected", "random", "optimistic", "pessimistic"] = "expected",
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
    if not pairs.has_image_features or not pairs.has_text_features:
        raise InvalidInputError("the pairs hold raw items: encode them first (diptych.encoders.encode_splits)")
    points = {"image_query": model.encode_images(pairs.images), "text_query": model.encode_texts(pairs.texts)}
    truth = _truth(pairs, relevant)
    results: dict[Direction, Evaluation] = {}
    for direction, other in zip(DIRECTIONS, reversed(DIRECTIONS), strict=True):
        kind = SameLabel if truth[direction].ndim == 1 else SharedLabel
        results[direction] = evaluate(
            points[direction],
            points[other],
            model.space,
            kind(truth[direction], truth[other]),
            measures,
            direction=direction,
            ties=ties,
            memory=memory,
        )
    return TwoWayEvaluation(results["image_query"], results["text_query"])


def _truth(pairs: Pairs, relevant: Relevant) -> dict[Direction, np.ndarray]:
    """Return for each side what must agree for two items to be relevant to each other."""
    if relevant not in get_args(Relevant):
        raise InvalidInputError(f"relevant must be one of {', '.join(get_args(Relevant))}, got {relevant!r}")
    if relevant == "label" and pairs.labels is None:
        raise InvalidInputError("these pairs have no labels: evaluate with relevant='instance'")
    if relevant == "instance" or pairs.labels is None or pairs.text_labels is None:
        return {"image_query": np.arange(pairs.n_images), "text_query": pairs.owners}
    return {"image_query": pairs.labels, "text_query": pairs.text_labels}
