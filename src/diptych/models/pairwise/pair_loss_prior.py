"""What a loss of pairs looks like before anything is learned, which is where its optimiser starts."""

from __future__ import annotations

import math

from diptych.models.pairwise.losses import PairLoss


def loss_curvature(loss: PairLoss, matched: float) -> float:
    """Return the second derivative of a loss in the score, where the score is the prior of a pair to match."""
    return matched * (1 - matched) if loss == "logistic" else 2.0


def start_intercept(loss: PairLoss, matched: float) -> float:
    """Return the best constant score when the share ``matched`` of pairs matches."""
    return math.log(matched / (1 - matched)) if loss == "logistic" else 2 * matched - 1
