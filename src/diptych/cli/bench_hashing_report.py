"""How ``diptych bench hashing`` prints what it found."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from diptych.benchmark.hashing import SETTING_TITLES, BitBudgetReport, CodeResult, spread
from diptych.benchmark.hashing.hashing_task import Setting
from diptych.cli.terminal import table
from diptych.metrics import AP, CMC
from diptych.space import DIRECTIONS, Direction

_MAP = AP().label


def print_bit_budget(report: BitBudgetReport, console: Console) -> None:
    """Print a table for each setting, the costs of each length, and what was left out."""
    folds = f"{report.n_folds} fold{'s' if report.n_folds > 1 else ''}"
    console.print(f"{report.task.title}; {folds}, mean ± standard deviation", style="bold")
    for setting in report.task.settings:
        console.print(f"\nAsked for {SETTING_TITLES[setting]}\n", style="bold")
        _print_setting(report, setting, console)
    console.print("\nCosts of a length\n", style="bold")
    _print_costs(report, console)
    for method, reason in report.left_out.items():
        console.print(f"left out: {method}, which {reason}" if "learns" in reason else f"left out: {method}: {reason}")


def _print_setting(report: BitBudgetReport, setting: Setting, console: Console) -> None:
    cmc = CMC(report.task.cmc_rank)
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    headings = ("bits", "MAP\nimage query", "MAP\ntext query", f"{cmc.label}\nimage query", f"{cmc.label}\ntext query")
    # Radius 2 and codes: means of the two sides.
    for heading in (
        *headings,
        "unified\nMAP",
        "P within\nradius 2",
        "distinct\ncodes",
        "bit\nbalance",
        "mean\n|corr.|",
    ):
        listing.add_column(heading, justify="right", no_wrap=True)
    listing.add_column("fit, s", justify="right", no_wrap=True)
    for method in report.methods:
        listing.add_section()
        for n_bits in report.bits:
            results = report.select(setting, method, n_bits)
            listing.add_row(method, str(n_bits), *_scores(results, cmc.label), *_code_cells(results))
    console.print(listing)
    everything = report.select(setting)
    chances = [
        f"{name} {_mean_over_folds(_both_ways(result.chance[key]) for result in everything):.4f}"
        for name, key in (("MAP", _MAP), (cmc.label, cmc.label))
    ]
    console.print(f"\nchance: {', '.join(chances)}. MAP: all relevant items, full ranking, ties by expectation.")
    console.print(
        "Gallery: codes of the other side alone; unified MAP: one code of both sides for every item of the gallery. "
        "P within radius 2: a query that finds nothing counts as zero."
    )
    for note in report.task.notes:
        console.print(note)


def _scores(results: list[CodeResult], cmc: str) -> list[str]:
    return [_spread_cell(results, key, way) for key in (_MAP, cmc) for way in DIRECTIONS]


def _spread_cell(results: list[CodeResult], key: str, way: Direction) -> str:
    mean, deviation = spread([result.measures[key][way] for result in results])
    return f"{mean:.4f} ± {deviation:.4f}"


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
    listing = table()
    for heading in ("bits", "bytes per item", "MB per million", "searches in a second"):
        listing.add_column(heading, justify="right", no_wrap=True)
    for cost in report.storage:
        listing.add_row(
            str(cost.n_bits),
            str(cost.bytes_per_item),
            f"{cost.megabytes_per_million:g}",
            f"{cost.queries_per_second:,.0f}",
        )
    console.print(listing)
    if report.storage:
        console.print(f"\nsearches: the ten nearest of {report.storage[0].n_items:,} random codes, exactly.")
