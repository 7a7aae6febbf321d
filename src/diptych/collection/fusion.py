"""Two rankings joined into one."""

from __future__ import annotations

from collections.abc import Sequence

_DAMPING = 60


def fuse(by_points: Sequence[int], by_words: Sequence[int], share: float) -> list[int]:
    """Join two rankings by reciprocal rank: an item gains (1 − share)/(60 + rank) and share/(60 + rank).

    ``share`` is the weight of the second. What is in one ranking only gains from that one; equal gains keep the order
    of the first. Cormack et al., "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009.

    >>> from diptych.collection.fusion import fuse
    >>> fuse([1, 2, 3], [3, 4], 0.5)
    [3, 1, 2, 4]
    """
    gains: dict[int, float] = {}
    for ranking, weight in ((by_points, 1 - share), (by_words, share)):
        for rank, row in enumerate(ranking, start=1):
            gains[row] = gains.get(row, 0.0) + weight / (_DAMPING + rank)
    return sorted(gains, key=lambda row: -gains[row])
