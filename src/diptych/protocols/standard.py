"""Scores of a fitted model: every item of one side is a query, the other side is the gallery."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.data import Pairs
from diptych.metrics import AP, Curve, Measure, Ties
from diptych.models import CrossModalModel
from diptych.protocols.encoded_retrieval import EncodedRetrieval, Gallery, Relevant
from diptych.protocols.retrieval import Retrieval
from diptych.protocols.two_way_evaluation import TwoWayEvaluation


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
