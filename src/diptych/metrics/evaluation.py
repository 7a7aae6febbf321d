"""The result of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.metrics.curve import Curve, CurvePoints
from diptych.metrics.measure import Measure
from diptych.metrics.tie_breaking import Ties

Empty = Literal["skip", "zero"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What an evaluation measured, and under which conventions.

    ``mean`` holds one number per measure (for ranks, what the measure's ``aggregate`` makes of them), ``values`` one
    per query with NaN where the query was skipped, ``curves`` the points of each curve, ``chance`` the exact value a
    random ranker has. ``evaluation[measure]`` is short for ``evaluation.mean[measure]``, ``evaluation[curve]`` for
    ``evaluation.curves[curve]``.

    >>> from diptych.metrics import AP, SameLabel, evaluate_scores
    >>> result = evaluate_scores([[0.9, 0.1]], SameLabel([0], [0, 1]), [AP()])
    >>> result[AP()], result.chance[AP()], result.n_without_relevant
    (1.0, 0.75, 0)
    """

    mean: dict[Measure, float]
    values: dict[Measure, FloatArray]
    curves: dict[Curve, CurvePoints]
    chance: dict[Measure, float]
    n_queries: int
    n_without_relevant: int
    ties: Ties
    empty: Empty

    @overload
    def __getitem__(self, measure: Measure) -> float: ...

    @overload
    def __getitem__(self, measure: Curve) -> CurvePoints: ...

    def __getitem__(self, measure: Measure | Curve) -> float | CurvePoints:
        if isinstance(measure, Measure) and measure in self.mean:
            return self.mean[measure]
        if isinstance(measure, Curve) and measure in self.curves:
            return self.curves[measure]
        measured = ", ".join(repr(known) for known in (*self.mean, *self.curves))
        raise InvalidInputError(f"{measure!r} was not measured; measured were {measured}")

    def __contains__(self, measure: Measure | Curve) -> bool:
        return measure in self.mean or measure in self.curves
