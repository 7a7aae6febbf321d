"""What a ranking needs of its queries."""

from __future__ import annotations

from typing import Protocol

from diptych.arrays import FloatArray, IntArray


class QuerySide(Protocol):
    """Points of queries by row, which may move."""

    @property
    def weights(self) -> FloatArray | None:
        """What is learned, None where nothing is."""

    def points(self, rows: IntArray) -> FloatArray:
        """Return the points of some queries."""

    def move(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Take a step, given the gradient of the loss by the points of these queries."""
