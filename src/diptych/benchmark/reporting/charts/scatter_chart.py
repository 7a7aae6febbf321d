"""Methods as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from diptych.benchmark.reporting.charts.frame import LEFT, RIGHT, TOP, WIDTH, Frame
from diptych.benchmark.reporting.charts.series import mark

_LETTER, _LINE = 5.6, 11.0


@dataclass(frozen=True)
class Point:
    """A method with its two values and the number of the series it belongs to."""

    name: str
    x: float
    y: float
    series: int = 0
    label: bool = True


def scatter_chart(
    title: str,
    points: Sequence[Point],
    labels: tuple[str, str],
    *,
    logarithmic: bool = False,
    diagonal: bool = False,
    steps: Sequence[tuple[float, float]] = (),
) -> str:
    """Draw points with as many of their names as find room; every point tells its name and values when pointed at.

    ``diagonal`` draws the line of equal values and gives both axes one range; ``steps`` is a frontier to draw as
    stairs, from left to right.

    >>> from diptych.benchmark.reporting.charts import Point, scatter_chart
    >>> "CCA</text>" in scatter_chart("Loss", [Point("CCA", 0.4, 0.3)], ("seen", "unseen"), diagonal=True)
    True
    """
    across, upwards = [point.x for point in points], [point.y for point in points]
    x_range = _padded(across, logarithmic)
    y_range = _padded(upwards)
    if diagonal:
        x_range = y_range = _padded(across + upwards)
    frame = Frame.around(title, labels, x_range, y_range, logarithmic=logarithmic)
    drawn = _diagonal(frame) if diagonal else ""
    drawn += _stairs(frame, steps) if steps else ""
    places = [(frame.x(point.x), frame.y(point.y)) for point in points]
    for point, (x, y) in zip(points, places, strict=True):
        told = f"{point.name}: {frame.x_label} {point.x:.4g}, {frame.y_label} {point.y:.4g}"
        drawn += f"<g><title>{escape(told)}</title>{mark(point.series, x, y)}</g>"
    drawn += _names(points, places)
    return frame.draw(drawn, f"{title}: {len(points)} methods, {frame.y_label} against {frame.x_label}")


def _padded(values: Sequence[float], logarithmic: bool = False) -> tuple[float, float]:
    low, high = min(values), max(values)
    if logarithmic:
        return low / 1.5, high * 1.5
    room = 0.08 * (high - low) or 0.05
    return max(0.0, low - room) if low >= 0 else low - room, high + room


def _diagonal(frame: Frame) -> str:
    low, high = frame.x.low, frame.x.high
    return (
        f'<line class="line chance" x1="{frame.x(low):.1f}" y1="{frame.y(low):.1f}" '
        f'x2="{frame.x(high):.1f}" y2="{frame.y(high):.1f}"/>'
    )


def _stairs(frame: Frame, steps: Sequence[tuple[float, float]]) -> str:
    path = f"M{frame.x(steps[0][0]):.1f} {frame.y(steps[0][1]):.1f}"
    for x, y in steps[1:]:
        path += f"H{frame.x(x):.1f}V{frame.y(y):.1f}"
    return f'<path class="line frontier" d="{path}H{WIDTH - RIGHT:.1f}"/>'


def _names(points: Sequence[Point], places: Sequence[tuple[float, float]]) -> str:
    """Write names beside their points, leaving out those that would cover a point or another name."""
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    drawn = []
    for point, (x, y) in zip(points, places, strict=True):
        width = _LETTER * len(point.name)
        for left, base in ((x + 7, y + 4), (x - 7 - width, y + 4), (x - width / 2, y - 7), (x - width / 2, y + 14)):
            box = (left, base - _LINE + 2, left + width, base + 1)
            inside = box[0] >= LEFT and box[2] <= WIDTH - 2 and box[1] >= TOP - 8
            if point.label and inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                drawn.append(f'<text class="name" x="{left:.1f}" y="{base:.1f}">{escape(point.name)}</text>')
                break
    return "".join(drawn)


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
