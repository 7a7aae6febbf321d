"""Charts as SVG text: coloured by the style sheet of the page, so that they follow light, dark and print."""

from diptych.benchmark.reporting.charts.bar_chart import bar_chart
from diptych.benchmark.reporting.charts.heat_map import heat_map
from diptych.benchmark.reporting.charts.line_chart import Line, line_chart
from diptych.benchmark.reporting.charts.scatter_chart import Point, scatter_chart
from diptych.benchmark.reporting.charts.series import MOST_SERIES, legend

__all__ = ["MOST_SERIES", "Line", "Point", "bar_chart", "heat_map", "legend", "line_chart", "scatter_chart"]
