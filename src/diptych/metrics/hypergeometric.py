"""How many relevant items of a tie group fall within a cutoff."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray


def hypergeometric(size: int, relevant: int, drawn: int) -> tuple[IntArray, FloatArray]:
    """Return the possible numbers of relevant items among ``drawn`` of ``size`` items, and their probabilities.

    The probabilities follow from the ratios of neighbours, summed outwards from the mode: differences of log-gamma
    values would lose six digits for galleries of a million.

    >>> from diptych.metrics.hypergeometric import hypergeometric
    >>> found, probability = hypergeometric(size=4, relevant=2, drawn=2)
    >>> found.tolist(), probability.round(4).tolist()
    ([0, 1, 2], [0.1667, 0.6667, 0.1667])
    """
    low, high = max(0, drawn - (size - relevant)), min(relevant, drawn)
    found = np.arange(low, high + 1)
    here = found[:-1].astype(np.float64)
    steps = np.log((relevant - here) * (drawn - here) / ((here + 1) * (size - relevant - drawn + here + 1)))
    mode = int(np.searchsorted(-steps, 0.0))
    logs = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
    weights = np.exp(logs)
    return found, weights / weights.sum()


def miss_probability(size: int, relevant: int, drawn: int) -> float:
    """Return C(size − relevant, drawn) / C(size, drawn), the chance that no relevant item is drawn.

    >>> from diptych.metrics.hypergeometric import miss_probability
    >>> round(miss_probability(size=4, relevant=2, drawn=2), 4)
    0.1667
    """
    fewer, more = sorted((relevant, drawn))
    remaining = size - np.arange(fewer, dtype=np.float64)
    return float(np.prod(np.maximum(remaining - more, 0) / remaining))
