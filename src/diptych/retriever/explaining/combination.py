"""How much each term of a query counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.arrays import FloatArray
from diptych.retriever.explaining.linear_parts import is_linear, linear_parts
from diptych.retriever.explaining.match import Match


def term_factors(matches: Sequence[Match], weights: Sequence[float]) -> FloatArray:
    """Return what the score of each term is multiplied with, so that the products sum to the score of the query.

    In a linear space the query is the unit vector along Σ wᵢ·uᵢ over the unit vectors uᵢ of the terms' points qᵢ, so
    a term with score qᵢ·g counts wᵢ/(‖qᵢ‖·‖Σ wⱼ·uⱼ‖) times; elsewhere scores are averaged with weights wᵢ/Σ|wⱼ|. A
    single wanted term counts once.
    """
    given = np.asarray(weights, dtype=np.float64)
    if len(matches) == 1 and given[0] > 0:
        return np.ones(1)
    space = matches[0].space
    if not is_linear(space) or space.split is not None:
        return np.asarray(given / np.abs(given).sum())
    rows = np.vstack([linear_parts(space, match.direction, match.query.point) for match in matches])
    # A covariance divides by the number of coordinates, which is no part of the query's length.
    rows = rows * (np.sqrt(rows.shape[1]) if space.name == "covariance" else 1.0)
    lengths = np.linalg.norm(rows, axis=1)
    safe = np.where(lengths > 0, lengths, 1.0)
    whole = float(np.linalg.norm(given @ (rows / safe[:, None])))
    return np.asarray(given / safe / whole if whole > 0 else np.zeros(len(given)))
