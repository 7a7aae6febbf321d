"""What one pass over pairs leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.arrays import FloatArray


@dataclass(frozen=True)
class PairSums:
    """The summed loss of all pairs, and its derivatives R = ∂loss/∂scores folded into either side.

    ``by_left`` is R @ right, one row for each left item; ``by_right`` is Rᵀ @ left, one row for each right item.
    """

    value: float
    by_left: FloatArray
    by_right: FloatArray
