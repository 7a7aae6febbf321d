"""A term of a query as a point."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.contract import Side
from diptych.space import Direction


@dataclass(frozen=True)
class AskedTerm:
    """A term of a query as a point: one row, its weight, and the side it comes from.

    ``is_blank`` marks words in which the encoder finds nothing: their point is where all unknown words lie, and no
    score is evidence of a match with them. ``outputs`` are the real numbers that a code is the signs of, where they are
    asked for and known.
    """

    point: AnyArray
    weight: float
    side: Side
    is_blank: bool = False
    outputs: FloatArray | None = None

    @property
    def direction(self) -> Direction:
        """The direction of the space; only spaces that treat the sides differently look at it."""
        return "image_query" if self.side == "image" else "text_query"
