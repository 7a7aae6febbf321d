"""What the codes of one fit reach in one setting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from diptych.space import Direction

ByDirection = dict[Direction, float]


@dataclass(frozen=True)
class CodeResult:
    """Measures in both directions, what a lookup finds, and how good the codes of the gallery are as codes.

    ``measures`` and ``chance`` are keyed by the label of the measure, such as ``MAP``; the gallery has codes of the
    other side alone. ``unified_map`` is MAP where every item of the gallery has one code of both sides.
    ``precision_radius_2`` counts queries that find nothing as zero, and ``unanswered_radius_2`` is their share.
    ``lookup_recall`` and ``lookup_precision`` have a point for each radius, all queries thrown together.
    ``statistics`` are those of the gallery's picture and text codes. ``encoded_per_second`` counts queries of both
    sides.
    """

    method: str
    n_bits: int
    fold: int
    setting: str
    measures: dict[str, ByDirection]
    chance: dict[str, ByDirection]
    unified_map: ByDirection
    precision_radius_2: ByDirection
    unanswered_radius_2: ByDirection
    lookup_recall: dict[Direction, list[float]]
    lookup_precision: dict[Direction, list[float]]
    statistics: dict[str, dict[str, Any]]
    fit_seconds: float
    encoded_per_second: float
    model: str

    def as_json(self) -> dict[str, Any]:
        """Return plain values, from which ``CodeResult(**values)`` makes it again."""
        return asdict(self)
