"""The share of visual queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from diptych.errors import InvalidInputError


def visual_share(visualness: ArrayLike, threshold: float, clicks: ArrayLike | None = None) -> float:
    """Return the share of queries that are visual: those whose visualness is strictly above a threshold t.

    .. math:: \\frac{\\sum_{q:\\,\\text{visualness}(q) > t} \\text{click}_q}{\\sum_{q} \\text{click}_q}

    With ``clicks``, how often each query was clicked, it is equation 14 of Dong et al., "Cross-media similarity
    evaluation for web image retrieval in the wild", 2018; without, every query weighs the same. A share that is larger
    with clicks than without says that visual queries are answered better. NaN where there is nothing to share.

    >>> from diptych.encoders import visual_share
    >>> visual_share([0.0, 0.5, 1.0], 0.5), visual_share([0.0, 0.5, 1.0], 0.5, clicks=[1, 1, 6])
    (0.3333333333333333, 0.75)
    """
    scores = np.asarray(visualness, dtype=np.float64)
    weights = np.ones_like(scores) if clicks is None else np.asarray(clicks, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != weights.shape:
        raise InvalidInputError(f"each query needs a visualness and clicks, got {scores.shape} and {weights.shape}")
    if not (weights >= 0).all():
        raise InvalidInputError("clicks must be numbers that are not negative")
    total = float(weights.sum())
    return float(weights[scores > threshold].sum()) / total if total > 0 else float("nan")
