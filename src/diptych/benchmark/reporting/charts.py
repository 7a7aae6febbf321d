"""Charts as SVG text: coloured by the style sheet of the page, so that they follow light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError

__all__ = ["MOST_SERIES", "Line", "Point", "bar_chart", "heat_map", "legend", "line_chart", "scatter_chart"]


# Each has its colour in the style sheet, for light and dark.
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")

MOST_SERIES = len(SHAPES)


def mark(number: int, x: float, y: float, size: float = 4.0) -> str:
    """Draw the mark of a series around a point."""
    shape = SHAPES[number % MOST_SERIES]
    style = f'class="mark s{number % MOST_SERIES}"'
    if shape in ("circle", "ring"):
        hollow = ' fill-opacity="0"' if shape == "ring" else ""
        return f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"{hollow}/>'
    return f'<path {style} d="{_outline(shape, x, y, size)}"/>'


def legend(names: Sequence[str], chance: bool = False) -> str:
    """Return a list of the series, to stand below charts that share them."""
    entries = [
        f'<li><svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">'
        f'<line class="line s{number}" x1="1" y1="6" x2="27" y2="6"/>{mark(number, 14, 6)}</svg>{escape(name)}</li>'
        for number, name in enumerate(names)
    ]
    if chance:
        entries.append(
            '<li><svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">'
            '<line class="line chance" x1="1" y1="6" x2="27" y2="6"/></svg>chance</li>'
        )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _outline(shape: str, x: float, y: float, size: float) -> str:
    corners = {
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "triangle": ((0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
        "diamond": ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)),
        "cross": (
            *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
            *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
        ),
    }[shape]
    return "M" + "L".join(f"{x + right * size:.1f} {y + down * size:.1f}" for right, down in corners) + "Z"


_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

_MOST_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """Maps values from ``low`` to ``high`` to places from ``start`` to ``end``, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, value = (math.log(one) if self.logarithmic else one for one in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values inside the range, six at most."""
        return self._decades() if self.logarithmic else self._even()

    def _even(self) -> list[float]:
        step = _round_step((self.high - self.low) / (_MOST_TICKS - 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _decades(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)) - 1, math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            ticks = [factor * 10.0**power for power in powers for factor in factors]
            inside = [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]
            if len(inside) <= _MOST_TICKS + 1:
                break
        return inside


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


def written(value: float) -> str:
    """Return a value as it stands beside an axis.

    >>> from diptych.benchmark.reporting.charts import written
    >>> written(0.30000000000000004), written(2000.0)
    ('0.3', '2,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


# Narrow, so that letters stay legible when a telephone shows the whole chart.
WIDTH, HEIGHT = 380.0, 280.0

LEFT, RIGHT, TOP, BOTTOM = 46.0, 18.0, 24.0, 40.0


@dataclass(frozen=True)
class Frame:
    """Two axes with their grid, labels and title; ``ticks`` overrides the round values of the horizontal axis."""

    title: str
    x_label: str
    y_label: str
    x: Scale
    y: Scale
    ticks: Sequence[float] = ()

    @classmethod
    def around(
        cls,
        title: str,
        labels: tuple[str, str],
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        *,
        logarithmic: bool = False,
        ticks: Sequence[float] = (),
    ) -> Frame:
        """Return a frame of the usual size for these ranges."""
        across = Scale(*x_range, LEFT, WIDTH - RIGHT, logarithmic)
        upwards = Scale(*y_range, HEIGHT - BOTTOM, TOP)
        return cls(title, *labels, across, upwards, ticks)

    def draw(self, content: str, summary: str) -> str:
        """Return the whole chart; ``summary`` is what a reader hears who cannot see it."""
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(summary)}">'
            f'<text class="title" x="{LEFT:.0f}" y="14">{escape(self.title)}</text>'
            f"{self._grid()}{content}{self._names()}</svg>"
        )

    def _grid(self) -> str:
        drawn = []
        for tick in self.ticks or self.x.ticks():
            x = self.x(tick)
            drawn.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>')
            drawn.append(f'<text class="tick middle" x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}">{written(tick)}</text>')
        for tick in self.y.ticks():
            y = self.y(tick)
            drawn.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            drawn.append(f'<text class="tick end" x="{LEFT - 5}" y="{y + 4:.1f}">{written(tick)}</text>')
        return "".join(drawn)

    def _names(self) -> str:
        middle, height = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        return (
            f'<text class="label middle" x="{middle:.1f}" y="{HEIGHT - 6}">{escape(self.x_label)}</text>'
            f'<text class="label middle" transform="translate(11 {height:.1f}) rotate(-90)">'
            f"{escape(self.y_label)}</text>"
        )


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


_NAME_LETTER, _LINE = 5.6, 11.0


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
        width = _NAME_LETTER * len(point.name)
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


_ROW, _BAR, _TOP, _BOTTOM = 26.0, 10.0, 24.0, 20.0

_CATEGORY_LETTER = 6.2


def bar_chart(title: str, bars: Mapping[str, Mapping[str, float]]) -> str:
    """Draw for every category a bar of each series, lying, with the value at its end.

    ``bars`` holds the categories of each series.

    >>> from diptych.benchmark.reporting.charts import bar_chart
    >>> bar_chart("MAP", {"image query": {"art": 0.2}, "text query": {"art": 0.3}}).count("<rect")
    2
    """
    categories = list(dict.fromkeys(name for values in bars.values() for name in values))
    if not categories:
        raise InvalidInputError("there are no categories to draw")
    left = min(0.45 * WIDTH, 10 + _CATEGORY_LETTER * max(map(len, categories)))
    height = _TOP + _ROW * len(categories) + _BOTTOM
    highest = max(value for values in bars.values() for value in values.values())
    across = Scale(0, highest * 1.14 or 1, left, WIDTH - 8)
    drawn = [f'<text class="title" x="4" y="14">{escape(title)}</text>']
    for tick in across.ticks():
        x = across(tick)
        drawn.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - _BOTTOM}"/>')
        drawn.append(f'<text class="tick middle" x="{x:.1f}" y="{height - 6}">{written(tick)}</text>')
    for row, category in enumerate(categories):
        top = _TOP + _ROW * row + 2
        drawn.append(f'<text class="tick end" x="{left - 5:.1f}" y="{top + _BAR + 4:.1f}">{escape(category)}</text>')
        for number, values in enumerate(bars.values()):
            if category in values:
                drawn.append(_bar(across, values[category], top + number * (_BAR + 1), number))
    summary = escape(f"{title}: {len(categories)} categories")
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{summary}">'
        f"{''.join(drawn)}</svg>"
    )


def _bar(across: Scale, value: float, top: float, number: int) -> str:
    width = across(value) - across.start
    return (
        f'<rect class="bar s{number}" x="{across.start:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BAR}"/>'
        f'<text class="value" x="{across(value) + 3:.1f}" y="{top + _BAR - 1:.1f}">{value:.2f}</text>'
    )


_CLASS_LETTER = 5.8

_DARK = 55

_LONGEST_NAME = 16


def heat_map(title: str, names: Sequence[str], counts: FloatArray) -> str:
    """Draw each row in per cent of its sum; dark cells are many, and every cell of half a per cent says how many.

    >>> import numpy as np
    >>> from diptych.benchmark.reporting.charts import heat_map
    >>> ">75</text>" in heat_map("SM", ["art", "war"], np.array([[3.0, 1.0], [0.0, 2.0]]))
    True
    """
    rates = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    short = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    margin = 10 + _CLASS_LETTER * max(map(len, short))
    cell = max(18.0, (380 - margin - 4) / len(names))
    side = margin + cell * len(names) + 4
    drawn = [f'<text class="title" x="4" y="14">{escape(title)}</text>']
    for row, name in enumerate(short):
        middle = margin + (row + 0.5) * cell
        drawn.append(f'<text class="tick end" x="{margin - 4:.1f}" y="{middle + 4:.1f}">{escape(name)}</text>')
        drawn.append(
            f'<text class="tick" transform="translate({middle + 4:.1f} {margin - 4:.1f}) rotate(-90)">'
            f"{escape(name)}</text>"
        )
        drawn += [
            _cell(rates[row, column], margin + column * cell, margin + row * cell, cell) for column in range(len(names))
        ]
    summary = escape(f"{title}: {np.trace(counts) / max(counts.sum(), 1):.0%} on the diagonal")
    return (
        f'<svg class="chart" viewBox="0 0 {side:.0f} {side:.0f}" role="img" aria-label="{summary}">'
        f"{''.join(drawn)}</svg>"
    )


def _cell(rate: float, left: float, top: float, side: float) -> str:
    box = f'<rect class="cell" x="{left:.1f}" y="{top:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
    drawn = f'{box} fill-opacity="{rate / 100:.2f}"/>'
    if rate < 0.5:
        return drawn
    kind = "value middle on-dark" if rate > _DARK else "value middle"
    return f'{drawn}<text class="{kind}" x="{left + side / 2:.1f}" y="{top + side / 2 + 4:.1f}">{rate:.0f}</text>'
