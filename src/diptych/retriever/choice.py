"""Which model to learn when nobody says."""

from __future__ import annotations

from diptych.data import Pairs
from diptych.metrics import AP
from diptych.models import CCA, ContrastiveProjection, CrossModalModel, MarginalSM, Preprocessed
from diptych.protocols import evaluate_model

_HELD_OUT = 0.25


def choose_model(features: Pairs) -> CrossModalModel:
    """Return the unfitted model that does best on a quarter of the pairs after learning from the rest.

    CCA and its contrastive continuation learn from the pairs; with labels, semantic matching joins them, and an answer
    counts as right when it shares a label.
    """
    train, held_out = features.split(_HELD_OUT)
    candidates: list[CrossModalModel] = [
        Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2"),
        Preprocessed(model=ContrastiveProjection(temperature=0.03), images="l2"),
    ]
    if features.labels is not None:
        candidates.append(Preprocessed(model=MarginalSM(C=3.0), images="l2"))
    rows = train.aligned()
    return max(candidates, key=lambda model: evaluate_model(model.fit(*rows), held_out).average(AP()))
