"""Queries whose points are given."""

from __future__ import annotations

from diptych.arrays import FloatArray, IntArray


class FixedQueries:
    """The text side of a ranking that learns the pictures' side alone.

    >>> import numpy as np
    >>> from diptych.models.clicks.fixed_queries import FixedQueries
    >>> FixedQueries(np.eye(2)).points(np.array([1])).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, points: FloatArray) -> None:
        self._points = points

    @property
    def weights(self) -> None:
        """Nothing is learned."""
        return None

    def points(self, rows: IntArray) -> FloatArray:
        """Return the points of some queries."""
        return self._points[rows]

    def move(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Leave them where they are."""
