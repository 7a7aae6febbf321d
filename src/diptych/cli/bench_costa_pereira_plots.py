"""The figures that ``bench costa-pereira`` draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych import figures
from diptych.benchmark.costa_pereira_report import CostaPereiraReport
from diptych.cli.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_costa_pereira(reports: Sequence[CostaPereiraReport], folder: Path) -> list[Path]:
    """Draw what the paper's figures 8 to 11 show, for every data set, and return the files."""
    files = []
    for report in reports:
        for name, figure in _figures(report):
            path = folder / f"costa-pereira-{report.task}-{name}.png"
            with writing(path):
                figures.save_figure(figure, path)
            files.append(path)
    return files


def _figures(report: CostaPereiraReport) -> Iterator[tuple[str, Figure]]:
    title = report.title.partition(",")[0]
    curves = {method: detail.precision for method, detail in report.details.items()}
    yield "precision-recall", figures.method_precision_recall(curves, report.chance.precision, title=title)
    for method, detail in report.details.items():
        name = f"{title}, {method}"
        yield (
            f"categories-{method.lower()}",
            figures.category_bars(detail.categories, report.chance.categories, title=name),
        )
        yield f"confusion-{method.lower()}", figures.confusion(detail.confusion, title=name)
