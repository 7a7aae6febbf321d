"""The tables and figures of `diptych bench hashing`: what hash codes of each length reach, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from diptych import figures
from diptych.benchmark.hashing import SETTING_TITLES, BitBudgetReport, CodeResult, Setting
from diptych.benchmark.runner import spread
from diptych.cli.console.output import bold, numbers, print_table, table
from diptych.cli.console.report_files import save_figures
from diptych.directions import DIRECTIONS, Direction
from diptych.errors import counted
from diptych.figures.parameter_curves import BitBudgetLine
from diptych.metrics import AP, CMC, Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def print_bit_budget(report: BitBudgetReport, console: Console) -> None:
    """Print a table for each setting, the costs of each length, and what was left out."""
    console.print(f"{report.task.title}; {counted(report.n_folds, 'fold')}, mean ± standard deviation", style="bold")
    for setting in report.task.settings:
        console.print(f"\nAsked for {SETTING_TITLES[setting]}\n", style="bold")
        _print_setting(report, setting, console)
    console.print("\nCosts of a length\n", style="bold")
    _print_costs(report, console)
    for method, reason in report.left_out.items():
        console.print(f"left out: {method}, which {reason}" if "learns" in reason else f"left out: {method}: {reason}")


def _print_setting(report: BitBudgetReport, setting: Setting, console: Console) -> None:
    cmc = CMC(report.task.cmc_rank)
    measured = [f"{measure}\n{way}" for measure in ("MAP", cmc.label) for way in ("image query", "text query")]
    # Radius 2 and codes: means of the two sides.
    of_codes = ("unified\nMAP", "P within\nradius 2", "distinct\ncodes", "bit\nbalance", "mean\n|corr.|")
    listing = table(bold("method"), *numbers("bits", *measured, *of_codes, "fit, s"))
    for method in report.methods:
        listing.add_section()
        for n_bits in report.bits:
            results = report.select(setting, method, n_bits)
            listing.add_row(method, str(n_bits), *_scores(results, cmc.label), *_code_cells(results))
    console.print(listing)
    everything = report.select(setting)
    chances = [
        f"{name} {_mean_over_folds(_both_ways(result.chance[key]) for result in everything):.4f}"
        for name, key in (("MAP", AP().label), (cmc.label, cmc.label))
    ]
    console.print(f"\nchance: {', '.join(chances)}. MAP: all relevant items, full ranking, ties by expectation.")
    console.print(
        "Gallery: codes of the other side alone; unified MAP: one code of both sides for every item of the gallery. "
        "P within radius 2: a query that finds nothing counts as zero."
    )
    for note in report.task.notes:
        console.print(note)


def _scores(results: list[CodeResult], cmc: str) -> list[str]:
    columns = [(key, way) for key in (AP().label, cmc) for way in DIRECTIONS]
    spreads = [spread([result.measures[key][way] for result in results]) for key, way in columns]
    return [f"{mean:.4f} ± {deviation:.4f}" for mean, deviation in spreads]


def _code_cells(results: list[CodeResult]) -> list[str]:
    def of_codes(name: str) -> float:
        return _mean_over_folds(sum(side[name] for side in result.statistics.values()) / 2 for result in results)

    return [
        f"{_mean_over_folds(_both_ways(result.unified_map) for result in results):.4f}",
        f"{_mean_over_folds(_both_ways(result.precision_radius_2) for result in results):.4f}",
        f"{of_codes('distinct'):.0f}",
        f"{of_codes('bit_balance'):.2f}",
        f"{of_codes('mean_abs_correlation'):.2f}",
        f"{_mean_over_folds(result.fit_seconds for result in results):.2f}",
    ]


def _mean_over_folds(values: Iterable[float]) -> float:
    return spread(list(values))[0]


def _both_ways(values: dict[Direction, float]) -> float:
    return sum(values.values()) / len(values)


def _print_costs(report: BitBudgetReport, console: Console) -> None:
    rows = (
        [
            str(cost.n_bits),
            str(cost.bytes_per_item),
            f"{cost.megabytes_per_million:g}",
            f"{cost.queries_per_second:,.0f}",
        ]
        for cost in report.storage
    )
    print_table([*numbers("bits", "bytes per item", "MB per million", "searches in a second")], rows, console)
    if report.storage:
        console.print(f"\nsearches: the ten nearest of {report.storage[0].n_items:,} random codes, exactly.")


def draw_bit_budgets(reports: Sequence[BitBudgetReport], folder: Path) -> list[Path]:
    """Draw MAP and CMC against bits for every data set, and return the files."""
    drawn = {
        f"hashing-{report.task.name}-{name}.png": _figure(report, measure)
        for report in reports
        for name, measure in (("map", AP()), ("cmc", CMC(report.task.cmc_rank)))
    }
    return save_figures(drawn, folder)


def _figure(report: BitBudgetReport, measure: Measure) -> Figure:
    key = measure.label
    settings: list[str] = list(report.task.settings)
    lines = {
        method: {setting: {way: _line(report, setting, method, key, way) for way in DIRECTIONS} for setting in settings}
        for method in report.methods
    }
    chance = {
        setting: {
            way: _mean_over_folds(result.chance[key][way] for result in report.select(setting)) for way in DIRECTIONS
        }
        for setting in settings
    }
    return figures.bit_budget(
        report.bits,
        lines,
        chance,
        supervised=report.supervised,
        score=measure.label,
        title=f"{report.task.title}: {measure.label} by length of code",
        costs=[f"{cost.bytes_per_item} B\n{cost.queries_per_second:,.0f}/s" for cost in report.storage],
    )


def _line(report: BitBudgetReport, setting: str, method: str, key: str, way: Direction) -> BitBudgetLine:
    spreads = [
        spread([result.measures[key][way] for result in report.select(setting, method, n_bits)])
        for n_bits in report.bits
    ]
    return BitBudgetLine([mean for mean, _ in spreads], [deviation for _, deviation in spreads])
