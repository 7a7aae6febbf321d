"""Results of both directions, however they are kept."""

from __future__ import annotations

from typing import Protocol

from diptych.errors import InvalidInputError
from diptych.figures.style import NAMES
from diptych.metrics import AP, Curve, CurvePoints, Evaluation
from diptych.space import Direction


class BothWays(Protocol):
    """Anything that gives the evaluation of a direction: a ``TwoWayEvaluation``, or a dictionary."""

    def __getitem__(self, direction: Direction, /) -> Evaluation:
        """Return the evaluation of queries from one side."""
        ...


def curve_of(evaluation: Evaluation, kind: type[Curve]) -> CurvePoints:
    """Return the measured curve of a kind, whatever its parameters."""
    for curve, points in evaluation.curves.items():
        if isinstance(curve, kind):
            return points
    raise InvalidInputError(f"no {kind.__name__} was measured; add {kind.__name__}() to the measures of the evaluation")


def legend_entry(evaluation: Evaluation, direction: Direction) -> str:
    """Return the direction's name, with MAP where it was measured."""
    return f"{NAMES[direction]}, MAP {evaluation.mean[AP()]:.3f}" if AP() in evaluation.mean else NAMES[direction]
