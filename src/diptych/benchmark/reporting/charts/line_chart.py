"""Curves of several methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from diptych.benchmark.reporting.charts.frame import Frame
from diptych.benchmark.reporting.charts.series import MOST_SERIES, mark
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class Line:
    """A named curve; a line without marks is the chance level."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    is_chance: bool = False


def line_chart(
    title: str,
    lines: Sequence[Line],
    labels: tuple[str, str],
    *,
    logarithmic: bool = False,
    from_zero: bool = True,
    ticks: Sequence[float] = (),
) -> str:
    """Draw curves as SVG; at most six can be told apart, besides chance.

    >>> from diptych.benchmark.reporting.charts import Line, line_chart
    >>> line_chart("CMC", [Line("CCA", [1, 10], [0.2, 0.7])], ("rank", "matched")).count("<circle")
    2
    """
    named = [line for line in lines if not line.is_chance]
    if not 0 < len(named) <= MOST_SERIES:
        raise InvalidInputError(f"draw one to {MOST_SERIES} curves, got {len(named)}; more cannot be told apart")
    across = [value for line in lines for value in line.x]
    upwards = [value for line in lines for value in line.y]
    spread = max(upwards) - min(upwards)
    low = 0.0 if from_zero else max(0.0, min(upwards) - 0.1 * spread)
    top = max(upwards) + 0.06 * (max(upwards) - low) or 1.0
    frame = Frame.around(title, labels, (min(across), max(across)), (low, top), logarithmic=logarithmic, ticks=ticks)
    numbers = {line.name: number for number, line in enumerate(named)}
    drawn = "".join(_draw(frame, line, numbers.get(line.name, 0)) for line in sorted(lines, key=_chance_first))
    return frame.draw(drawn, f"{title}: {', '.join(f'{line.name} ends at {line.y[-1]:.3f}' for line in named)}")


def _draw(frame: Frame, line: Line, number: int) -> str:
    places = [(frame.x(x), frame.y(y)) for x, y in zip(line.x, line.y, strict=True)]
    kind = "chance" if line.is_chance else f"s{number}"
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    marks = "" if line.is_chance else "".join(mark(number, x, y, 3.2) for x, y in places)
    return f'<g><title>{escape(line.name)}</title><path class="line {kind}" d="{path}"/>{marks}</g>'


def _chance_first(line: Line) -> bool:
    """Order lines so that chance lies below the others."""
    return not line.is_chance
