"""The figures that ``bench`` draws."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych import figures
from diptych.benchmark import Row, TaskReport
from diptych.cli.files import writing
from diptych.figures.method_precision_recall import MOST_METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What the text about figure 3 of Menon et al. (2015) compares, with what each of them competes with.
_COMPARED = ("CCA", "CMML", "logistic cross-product", "SM", "marginal SM", "marginal SCM")
_CHANCE = "random"


def draw_bench(reports: Sequence[TaskReport], folder: Path) -> list[Path]:
    """Draw precision–recall of the compared methods and every sensitivity curve, and return the files."""
    files = []
    for report in reports:
        for name, figure in _figures(report).items():
            path = folder / f"{report.task}-{name}.png"
            with writing(path):
                figures.save_figure(figure, path)
            files.append(path)
    return files


def _figures(report: TaskReport) -> dict[str, Figure]:
    title = re.split(r"[,(]", report.title)[0].strip()
    rows = {row.name: row for row in report.rows}
    drawn = {}
    compared = _compared(report.rows)
    if compared:
        drawn["precision-recall"] = figures.method_precision_recall(
            {row.name: row.precision for row in compared},
            rows[_CHANCE].precision if _CHANCE in rows else None,
            title=title,
        )
    for curve in report.sensitivities:
        parameter = curve.parameter.rpartition("__")[2].replace("_", "-")
        drawn[f"sensitivity-{parameter}"] = figures.sensitivity(
            curve.values,
            curve.means,
            curve.deviations,
            label=curve.label,
            title=f"{title}, {curve.entry}",
            score="test MAP",
        )
    return drawn


def _compared(rows: Sequence[Row]) -> list[Row]:
    """Return the rows to draw: those of the paper's figure, or the first ones where a run has none of them."""
    named = [row for row in rows if row.name in _COMPARED]
    return named or [row for row in rows if row.name != _CHANCE][:MOST_METHODS]
