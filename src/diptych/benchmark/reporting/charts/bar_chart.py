"""Values of categories as pairs of bars."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from diptych.benchmark.reporting.charts.frame import WIDTH
from diptych.benchmark.reporting.charts.scale import Scale, written
from diptych.errors import InvalidInputError

_ROW, _BAR, _TOP, _BOTTOM = 26.0, 10.0, 24.0, 20.0
_LETTER = 6.2


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
    left = min(0.45 * WIDTH, 10 + _LETTER * max(map(len, categories)))
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
