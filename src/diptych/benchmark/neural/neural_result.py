"""What one fit of a method reaches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from diptych.space import Direction

ByDirection = dict[Direction, float]


@dataclass(frozen=True)
class NeuralResult:
    """Measures and chance in both directions, keyed by the label of the measure, and precision at each scope.

    ``relevant_share`` is the chance level of precision at any scope.
    """

    method: str
    seed: int
    measures: dict[str, ByDirection]
    chance: dict[str, ByDirection]
    scopes: list[int]
    precision: dict[Direction, list[float]]
    relevant_share: ByDirection
    fit_seconds: float
    encode_seconds: float
    model: str

    def as_json(self) -> dict[str, Any]:
        """Return plain values, from which ``NeuralResult(**values)`` makes it again."""
        return asdict(self)
