from __future__ import annotations

import re

import pytest

from diptych.benchmark.reporting.charts import Line, Point, line_chart, scatter_chart
from diptych.errors import InvalidInputError


@pytest.mark.parametrize("high", [1.0, 0.4718, 0.07])
def test_ticks_are_few_and_round(high: float) -> None:
    drawn = line_chart("", [Line("CCA", [0, 1], [0, high])], ("x", "y"))
    ticks = re.findall(r"text-anchor: end[^>]*>([^<]+)</text>", drawn)
    assert 3 <= len(ticks) <= 7
    assert all(len(tick) <= 5 and 0 <= float(tick) <= 1.1 * high for tick in ticks)


def test_logarithmic_ticks_cover_decades() -> None:
    drawn = line_chart("", [Line("CCA", [1, 1000], [0, 1])], ("x", "y"), logarithmic=True)
    assert [f">{tick}</text>" in drawn for tick in ("1", "3", "10", "30", "100", "300", "1,000")] == [True] * 7


def test_charts_take_their_colours_from_the_style_sheet() -> None:
    drawn = line_chart("", [Line("CCA & <SM>", [0, 1], [0, 1])], ("x", "y"))
    assert "var(--s0)" in drawn
    assert not re.search('#[0-9a-f]{6}[;"]', drawn)
    assert "<title>CCA &amp; &lt;SM&gt;</title>" in drawn


def test_a_chart_of_too_many_lines_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="more cannot be told apart"):
        line_chart("", [Line(str(number), [0, 1], [0, 1]) for number in range(7)], ("x", "y"))


def test_names_in_a_scatter_do_not_cover_each_other() -> None:
    drawn = scatter_chart("", [Point("same place", 0.5, 0.5) for _ in range(9)], ("x", "y"))
    assert 1 <= drawn.count("same place</text>") <= 4
