"""The figures that ``bench hashing`` draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych import figures
from diptych.benchmark.hashing import BitBudgetReport, CodeResult, spread
from diptych.cli.files import writing
from diptych.figures.bit_budget import Line
from diptych.metrics import AP, CMC, Measure
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_bit_budgets(reports: Sequence[BitBudgetReport], folder: Path) -> list[Path]:
    """Draw MAP and CMC against bits for every data set, and return the files."""
    files = []
    for report in reports:
        for name, measure in (("map", AP()), ("cmc", CMC(report.task.cmc_rank))):
            path = folder / f"hashing-{report.task.name}-{name}.png"
            with writing(path):
                figures.save_figure(_figure(report, measure), path)
            files.append(path)
    return files


def _figure(report: BitBudgetReport, measure: Measure) -> Figure:
    key = measure.label
    settings: list[str] = list(report.task.settings)
    lines = {
        method: {setting: {way: _line(report, setting, method, key, way) for way in DIRECTIONS} for setting in settings}
        for method in report.methods
    }
    chance = {setting: {way: _chance(report.select(setting), key, way) for way in DIRECTIONS} for setting in settings}
    return figures.bit_budget(
        report.bits,
        lines,
        chance,
        supervised=report.supervised,
        score=measure.label,
        title=f"{report.task.title}: {measure.label} by length of code",
        costs=[f"{cost.bytes_per_item} B\n{cost.queries_per_second:,.0f}/s" for cost in report.storage],
    )


def _line(report: BitBudgetReport, setting: str, method: str, key: str, way: Direction) -> Line:
    spreads = [
        spread([result.measures[key][way] for result in report.select(setting, method, n_bits)])
        for n_bits in report.bits
    ]
    return Line([mean for mean, _ in spreads], [deviation for _, deviation in spreads])


def _chance(results: list[CodeResult], key: str, way: Direction) -> float:
    return spread([result.chance[key][way] for result in results])[0]
