"""The figures that ``bench clicks`` draws."""

from __future__ import annotations

from pathlib import Path

from diptych import figures
from diptych.benchmark.web import WebReport
from diptych.benchmark.web.web_report import AVERAGE, LEARNED, RANDOM
from diptych.cli.files import writing
from diptych.figures.query_group_bars import MOST_METHODS

FOLDS = tuple(range(11))
_GROUPS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")


def draw_click_benchmark(report: WebReport, folder: Path) -> list[Path]:
    """Draw noise curves and, with one-fold noise, the groups of visualness; return the files."""
    column = report.columns[-1]
    curves = {report.title_of[row]: report.noise_curve(row, column, "experts", FOLDS) for row in (*report.rows, RANDOM)}
    drawn = {
        "clicks-noise.png": figures.noise_curves(
            FOLDS, curves, score="NDCG@25", title="Expert grades, with irrelevant pictures added"
        ),
        "clicks-visualness.png": figures.query_group_bars(
            _GROUPS,
            {report.title_of[row]: report.group_means(row, column, "experts") for row in _shown(report)},
            report.group_means(RANDOM, column, "experts"),
            counts=report.group_sizes("experts"),
            title="Experts, one-fold noise",
        ),
    }
    for name, figure in drawn.items():
        with writing(folder / name):
            figures.save_figure(figure, folder / name)
    return [folder / name for name in drawn]


def _shown(report: WebReport) -> list[str]:
    """Return the methods of the fusion and their average, as many as bars can tell apart."""
    fused = [method.name for method in report.methods if method.is_fused]
    return [row for row in (*fused, AVERAGE) if row in report.rows and row != LEARNED][:MOST_METHODS]
