"""Charts as SVG text: matplotlib draws them, and the style sheet of the page colours them for light, dark and print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# By the number of a series: matplotlib's marker, the letter that a legend shows, and the dashes of its line.
_MARKERS = ("o", "s", "^", "D", "P", "o")
_LETTERS = ("●", "■", "▲", "◆", "✚", "○")
_DASHES: tuple[Any, ...] = ("-", (0, (9, 3)), (0, (5, 2)), (0, (9, 2, 2, 2)), (0, (2, 2)), "-")
MAX_SERIES = len(_MARKERS)

# Colours of the style sheet. matplotlib knows no variables, so that each stands as a colour that nothing else has.
_VARIABLES = ("s0", "s1", "s2", "s3", "s4", "s5", "ink", "soft", "rule", "cell", "on-cell")

# Narrow, so that letters stay legible when a telephone shows the whole chart.
_WIDTH = 380.0
_HEIGHT = 280.0
_LEFT = 46.0
_RIGHT = 18.0
_TOP = 24.0
_BOTTOM = 40.0

# Widths are estimated, because the font is the reader's.
_NAME_LETTER = 5.6
_CATEGORY_LETTER = 6.2
_CLASS_LETTER = 5.8

# Markers are referred to by identifiers, in which a page puts the number of the chart, since they hold for all of it.
MARK_PREFIX = "chart-mark-"

# A group of the drawing with this before its identifier tells the rest when it is pointed at.
_TELLS = "tells:"
_DARK = 55
_LONGEST_NAME = 16


@dataclass(frozen=True)
class Line:
    """A named curve; a line without marks is the chance level."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    is_chance: bool = False


@dataclass(frozen=True)
class Point:
    """A method with its two values and the number of the series it belongs to."""

    name: str
    x: float
    y: float
    series: int = 0
    label: bool = True


def can_draw() -> bool:
    """Return True if matplotlib, which is an extra, is installed."""
    return find_spec("matplotlib") is not None


def legend(names: Sequence[str], chance: bool = False) -> str:
    """Return a list of the series, to stand beside charts that share them."""
    kinds = [(f"s{number}", _LETTERS[number], name) for number, name in enumerate(names)]
    entries = [
        f'<li><svg class="swatch" viewBox="0 0 28 12" aria-hidden="true"><line class="line {kind}" x1="1" y1="6" '
        f'x2="27" y2="6"/><text class="{kind}" x="14" y="10">{letter}</text></svg>{escape(name)}</li>'
        for kind, letter, name in [*kinds, *([("chance", "", "chance")] if chance else [])]
    ]
    return f'<ul class="legend">{"".join(entries)}</ul>'


def line_chart(
    title: str,
    lines: Sequence[Line],
    labels: tuple[str, str],
    *,
    logarithmic: bool = False,
    from_zero: bool = True,
    ticks: Sequence[float] = (),
) -> str:
    """Draw curves; at most six can be told apart, besides chance. ``ticks`` overrides the round values below."""
    named = [line for line in lines if not line.is_chance]
    if not 0 < len(named) <= MAX_SERIES:
        raise InvalidInputError(f"draw one to {MAX_SERIES} curves, got {len(named)}; more cannot be told apart")
    across = [value for line in lines for value in line.x]
    upwards = [value for line in lines for value in line.y]
    low = 0.0 if from_zero else max(0.0, min(upwards) - 0.1 * (max(upwards) - min(upwards)))
    top = max(upwards) + 0.06 * (max(upwards) - low) or 1.0
    with _page_style():
        axes = _framed_axes(title, labels, (min(across), max(across)), (low, top), logarithmic, ticks)
        for line in lines:
            if line.is_chance:
                axes.plot(line.x, line.y, gid=_TELLS + line.name, **_aside(5, 3))
        for number, line in enumerate(named):
            style = {**_mark(number, 6.4), "linestyle": _DASHES[number]}
            axes.plot(line.x, line.y, gid=_TELLS + line.name, **style)
        return _svg(axes, f"{title}: {', '.join(f'{line.name} ends at {line.y[-1]:.3f}' for line in named)}")


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
    """
    across, upwards = [point.x for point in points], [point.y for point in points]
    x_range, y_range = _padded(across, logarithmic), _padded(upwards)
    if diagonal:
        x_range = y_range = _padded(across + upwards)
    with _page_style():
        axes = _framed_axes(title, labels, x_range, y_range, logarithmic)
        if diagonal:
            axes.plot(x_range, x_range, **_aside(5, 3))
        if steps:
            x, y = zip(*steps, (x_range[1], steps[-1][1]), strict=True)
            axes.plot(x, y, drawstyle="steps-post", **_aside(2, 2))
        for point in points:
            told = f"{point.name}: {labels[0]} {point.x:.4g}, {labels[1]} {point.y:.4g}"
            axes.plot(point.x, point.y, gid=_TELLS + told, **_mark(point.series, 8))
        _write_names(axes, points)
        return _svg(axes, f"{title}: {len(points)} methods, {labels[1]} against {labels[0]}")


def bar_chart(title: str, bars: Mapping[str, Mapping[str, float]]) -> str:
    """Draw for every category a bar of each series, lying, with the value at its end; ``bars`` is series by series."""
    categories = list(dict.fromkeys(name for values in bars.values() for name in values))
    if not categories:
        raise InvalidInputError("there are no categories to draw")
    left = min(0.45 * _WIDTH, 10 + _CATEGORY_LETTER * max(map(len, categories)))
    highest = max(value for values in bars.values() for value in values.values())
    with _page_style():
        axes = _axes(title, (left, 8, _TOP, 20), (_WIDTH, _TOP + 26 * len(categories) + 20))
        axes.set(xlim=(0, highest * 1.14 or 1), ylim=(len(categories) - 0.5, -0.5))
        axes.set_yticks(range(len(categories)), categories)
        _round_ticks(axes.xaxis)
        axes.grid(axis="x")
        for number, values in enumerate(bars.values()):
            places = [categories.index(name) + 0.42 * (number - (len(bars) - 1) / 2) for name in values]
            look: Any = {"color": _colour(f"s{number}"), "alpha": 0.75 if number == 1 else None}
            drawn = axes.barh(places, list(values.values()), 0.385, **look)
            axes.bar_label(drawn, [f"{value:.2f}" for value in values.values()], padding=3, fontsize=10)
        return _svg(axes, f"{title}: {len(categories)} categories")


def heat_map(title: str, names: Sequence[str], counts: FloatArray) -> str:
    """Draw each row in per cent of its sum; dark cells are many, and every cell of half a per cent says how many."""
    from matplotlib.colors import to_rgba

    rates = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    short = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    margin = 10 + _CLASS_LETTER * max(map(len, short))
    cell = max(18.0, (_WIDTH - margin - 4) / len(names))
    side = margin + cell * len(names) + 4
    with _page_style():
        axes = _axes(title, (margin, 4, margin, 4), (side, side))
        axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5))
        axes.xaxis.tick_top()
        upright: Any = {"rotation": 90, "rotation_mode": "anchor", "ha": "left", "va": "center_baseline"}
        axes.set_xticks(range(len(names)), short, **upright)
        axes.set_yticks(range(len(names)), short)
        rows, columns = np.indices(rates.shape).reshape(2, -1)
        shades = [to_rgba(_colour("cell"), rate / 100) for rate in rates.ravel()]
        look: Any = {"marker": "s", "linewidths": 0.5, "edgecolors": _colour("rule"), "clip_on": False}
        axes.scatter(columns, rows, (cell - 1) ** 2, shades, **look)
        for row, column in np.argwhere(rates >= 0.5):
            colour = _colour("on-cell" if rates[row, column] > _DARK else "ink")
            middle: Any = {"ha": "center", "va": "center_baseline", "fontsize": 10, "color": colour}
            axes.text(column, row, f"{rates[row, column]:.0f}", **middle)
        return _svg(axes, f"{title}: {np.trace(counts) / max(counts.sum(), 1):.0%} on the diagonal")


@contextmanager
def _page_style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        soft = dict.fromkeys(("xtick.color", "ytick.color", "axes.labelcolor"), _colour("soft"))
        colours: Any = {**soft, "text.color": _colour("ink"), "grid.color": _colour("rule")}
        sizes: Any = {"font.size": 11, "axes.labelsize": 11, "grid.linewidth": 1, "lines.scale_dashes": False}
        # Without a fixed salt the identifiers inside an SVG are new in every file.
        files: Any = {"svg.fonttype": "none", "svg.hashsalt": "diptych", "axes.axisbelow": True}
        matplotlib.rcParams.update({**colours, **sizes, **files})
        yield


def _axes(title: str, margins: tuple[float, float, float, float], size: tuple[float, float]) -> Axes:
    """Return axes inside margins (left, right, top, bottom) of a figure, in units of the page."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72)
    figure.patch.set_visible(False)
    left, right, top, bottom = margins
    across, upwards = size[0] - left - right, size[1] - top - bottom
    axes = figure.add_axes((left / size[0], bottom / size[1], across / size[0], upwards / size[1]), frameon=False)
    axes.tick_params(length=0, pad=5)
    figure.text(4 / size[0], 1 - 14 / size[1], title, fontsize=12, fontweight="bold")
    return axes


def _framed_axes(
    title: str,
    labels: tuple[str, str],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    logarithmic: bool,
    ticks: Sequence[float] = (),
) -> Axes:
    axes = _axes(title, (_LEFT, _RIGHT, _TOP, _BOTTOM), (_WIDTH, _HEIGHT))
    axes.set(xscale="log" if logarithmic else "linear", xlim=x_range, ylim=y_range, xlabel=labels[0], ylabel=labels[1])
    # At the edges of the chart, however wide the ticks are.
    axes.xaxis.set_label_coords(0.5, (14 - _BOTTOM) / axes.bbox.height)
    axes.yaxis.set_label_coords((14 - _LEFT) / axes.bbox.width, 0.5)
    axes.yaxis.label.set_rotation_mode("anchor")
    _round_ticks(axes.xaxis, x_range if logarithmic else None, ticks)
    _round_ticks(axes.yaxis)
    axes.grid()
    return axes


def _round_ticks(axis: Any, decades: tuple[float, float] | None = None, ticks: Sequence[float] = ()) -> None:
    """Put about six round values beside an axis; ``decades`` is its range where it is logarithmic."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if ticks:
        axis.set_major_locator(FixedLocator(list(ticks)))
    elif decades:
        span = np.log10(decades[1] / decades[0])
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 2 else (1, 3) if span < 3.7 else (1,)))
    else:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"))


def _mark(number: int, size: float) -> dict[str, Any]:
    series = number % MAX_SERIES
    look = {"marker": _MARKERS[series], "markersize": size, "markeredgewidth": 1.2, "linewidth": 1.8}
    hollow = {"markerfacecolor": "none"} if series == MAX_SERIES - 1 else {}
    return {"color": _colour(f"s{series}"), "clip_on": False, **look, **hollow}


def _aside(*dashes: float) -> dict[str, Any]:
    """Return the look of a line that is no series, such as chance."""
    return {"color": _colour("soft"), "linestyle": (0, dashes), "linewidth": 1.4, "clip_on": False}


def _colour(variable: str) -> str:
    return f"#fe00{_VARIABLES.index(variable):02x}"


def _padded(values: Sequence[float], logarithmic: bool = False) -> tuple[float, float]:
    low, high = min(values), max(values)
    if logarithmic:
        return low / 1.5, high * 1.5
    room = 0.08 * (high - low) or 0.05
    return max(0.0, low - room) if low >= 0 else low - room, high + room


def _write_names(axes: Axes, points: Sequence[Point]) -> None:
    """Write names beside their points, leaving out those that would cover a point or another name."""
    places = axes.transData.transform([(point.x, point.y) for point in points]).tolist()
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    for point, (x, y) in zip(points, places, strict=True):
        width = _NAME_LETTER * len(point.name)
        for left, base in ((x + 7, y - 4), (x - 7 - width, y - 4), (x - width / 2, y + 7), (x - width / 2, y - 14)):
            right, top = left + width, base + 9
            inside = left >= _LEFT and right <= _WIDTH - 2 and top <= _HEIGHT - _TOP + 8
            free = not any(left < box[2] and box[0] < right and base - 1 < box[3] and box[1] < top for box in taken)
            if point.label and inside and free:
                taken.append((left, base - 1, right, top))
                axes.figure.text(left / _WIDTH, base / _HEIGHT, point.name, fontsize=10)
                break


def _svg(axes: Axes, summary: str) -> str:
    """Return the figure as an element of the page; ``summary`` is what a reader hears who cannot see it."""
    figure: Any = axes.figure
    written = StringIO()
    figure.savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    content = written.getvalue().partition("<svg ")[2].partition(">")[2]
    content = re.sub(r"<!--.*?-->|<(style|metadata|clipPath).*?</\1>", "", content, flags=re.DOTALL)
    content = re.sub(r'<g id="[\w.]+"', "<g", re.sub("<[^>]+>", _for_page, content))
    content = re.sub(rf'<g id="{_TELLS}([^"]*)">', r"<g><title>\1</title>", content)
    content = re.sub(r">\s+<", "><", content).replace("<g/>", "").replace("<defs></defs>", "").strip()
    content = re.sub(r'( id="|href="#)', rf"\g<1>{MARK_PREFIX}", content)
    size = f"0 0 {figure.bbox.width:.0f} {figure.bbox.height:.0f}"
    return f'<svg class="chart" viewBox="{size}" role="img" aria-label="{escape(summary)}">{content}'


def _for_page(tag: re.Match[str]) -> str:
    """Return a tag with the colours and the font of the page, and no more digits than can be seen."""
    text = re.sub("#fe00(..)", lambda found: f"var(--{_VARIABLES[int(found[1], 16)]})", tag[0].replace("\n", ""))
    if _TELLS in text:
        return text
    return re.sub(r' font-family: [^;"]*;| transform="rotate\(-0 [^)]*\)"| clip-path="[^"]*"|(?<=\.\d\d)\d+', "", text)
