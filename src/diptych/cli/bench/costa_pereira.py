"""The tables and figures of `diptych bench costa-pereira`, beside those of Costa Pereira et al. (2014)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from diptych import figures
from diptych.benchmark.studies.costa_pereira import CostaPereiraReport, MapRow
from diptych.cli.console.output import bold, folded, numbers, print_table, scores, table, whole
from diptych.cli.console.report_files import save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DISTANCES = {"euclidean": "ℓ2", "l1": "ℓ1", "kl": "KL", "cosine": "NC", "pearson": "NCc"}


def print_costa_pereira(report: CostaPereiraReport, console: Console) -> None:
    """Print the tables of one data set in the order of the paper."""
    console.print(f"{report.title}\n", style="bold")
    if len(report.representations) > 1:
        console.print(f"Features, MAP of SM on the {report.n_validation} validation pairs\n", style="bold")
        _print_rows(report.representations, console, detail="features")
    _print_pairs(report, console)
    console.print("\nDistances (Table IV), MAP on the validation part\n", style="bold")
    _print_rows([replace(row, detail=_DISTANCES[row.detail]) for row in report.distances], console, detail="distance")
    for row in report.distances:
        if row.sign_range is not None:
            low, high = row.sign_range
            console.print(
                f"\n{row.method} under {_DISTANCES[row.detail]} depends on the signs of the components, which nothing "
                f"determines: mean over random signs; their averages lie between {low:.4f} and {high:.4f}."
            )
    console.print("\nCorrelation methods (Tables V and VI) by NC, MAP on the validation part\n", style="bold")
    _print_rows(report.correlation, console, detail="chosen")
    console.print(f"\nTest part (Tables VIII and IX), MAP of {report.n_test} pairs\n", style="bold")
    _print_rows(report.test, console, detail="chosen")
    gains = ", ".join(f"{row.method} {report.gain(row.method):+.1f} %" for row in report.test if row.method != "SCM")
    console.print(f"\nSCM's average beside that of the others: {gains}.")
    console.print("MAP: all relevant items, full ranking, ties by expectation.")
    if any(row.published for row in report.test):
        console.print("paper: as printed by Costa Pereira et al. 2014, whose features are larger.")
    for note in report.notes:
        console.print(note)


def _print_pairs(report: CostaPereiraReport, console: Console) -> None:
    console.print("\nPairs of each category (Tables II and III)\n", style="bold")
    rows = ([category, *(f"{count:,}" for count in counts.values())] for category, counts in report.pairs.items())
    print_table([bold("category"), *numbers("training", "of them for validation", "test", "all")], rows, console)


def _print_rows(rows: Sequence[MapRow], console: Console, *, detail: str) -> None:
    beside = any(row.published for row in rows)
    columns = []
    for heading in ("image query", "text query", "average"):
        columns += [*scores(heading), *(numbers("paper") if beside else [])]
    comes_first = detail == "distance"
    columns = [whole(detail), *columns] if comes_first else [*columns, folded(detail)]
    listing = table(bold("method"), *columns)
    for row in rows:
        cells = []
        for name in ("image_query", "text_query", "average"):
            cells.append(f"{getattr(row, name):.4f}")
            if beside:
                cells.append("–" if row.published is None else f"{getattr(row.published, name):.3f}")
        listing.add_row(row.method, *([row.detail, *cells] if comes_first else [*cells, row.detail]))
    console.print(listing)


def draw_costa_pereira(reports: Sequence[CostaPereiraReport], folder: Path) -> list[Path]:
    """Draw what the paper's figures 8 to 11 show, for every data set, and return the files."""
    named = {f"{report.task}-{name}": figure for report in reports for name, figure in _figures(report)}
    return save_figures({f"costa-pereira-{name}.png": figure for name, figure in named.items()}, folder)


def _figures(report: CostaPereiraReport) -> Iterator[tuple[str, Figure]]:
    title = report.title.partition(",")[0]
    curves = {method: detail.precision for method, detail in report.details.items()}
    yield "precision-recall", figures.method_precision_recall(curves, report.chance.precision, title=title)
    for method, detail in report.details.items():
        name = f"{title}, {method}"
        bars = figures.category_bars(detail.categories, report.chance.categories, title=name)
        yield f"categories-{method.lower()}", bars
        yield f"confusion-{method.lower()}", figures.confusion(detail.confusion, title=name)
