"""How far a search for weights has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AscentReport:
    """One pass over all parts: which restart and which pass of it, the measure reached, and the weights then.

    >>> from diptych.models.fusion import AscentReport
    >>> AscentReport(restart=1, passes=2, value=0.5, weights=(0.75, 0.25)).value
    0.5
    """

    restart: int
    passes: int
    value: float
    weights: tuple[float, ...]
