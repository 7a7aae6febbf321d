"""The tables and figures of `diptych bench`: every method on one task, beside the published numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from diptych import figures
from diptych.benchmark import Row, SensitivityCurve, StudyReport, TaskReport
from diptych.cli.console.output import bold, folded, numbers, or_dash, scores, table, whole
from diptych.cli.console.report_files import save_figures
from diptych.directions import DIRECTIONS
from diptych.figures.retrieval_curves import MAX_PRECISION_RECALL_METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAPERS = {"001": "Menon et al. 2015", "004": "Costa Pereira et al. 2014"}

# What the text about figure 3 of Menon et al. (2015) compares, with what each of them competes with.
_COMPARED = ("CCA", "CMML", "logistic cross-product", "SM", "marginal SM", "marginal SCM")
_CHANCE = "random"


def print_study(report: StudyReport, console: Console) -> None:
    """Print what every task found, one after another, and which tasks could not run here."""
    for number, task in enumerate(report.reports):
        if number:
            console.print()
        print_bench(task, console)
    for missing in report.missing:
        console.print(f"\n{missing.title}\n", style="bold")
        console.print(f"not on this machine: {missing.reason}")


def print_bench(report: TaskReport, console: Console) -> None:
    """Print the table of methods, what was chosen for each and, if measured, distances and sensitivity curves."""
    console.print(f"{report.title}\n", style="bold")
    _print_methods(report, console)
    console.print("\nChosen on hold-outs of the training part\n", style="bold")
    _print_choices(report, console)
    if report.distances:
        console.print("\nDistance measures, average MAP on hold-outs of the training part\n", style="bold")
        _print_distances(report, console)
    for curve in report.sensitivities:
        console.print(f"\n{curve.entry}, test MAP by {curve.label} (mean ± deviation of draws)\n", style="bold")
        _print_sensitivity(curve, console)


def _print_methods(report: TaskReport, console: Console) -> None:
    sources = sorted({(row.published.paper, row.published.table) for row in report.rows if row.published})
    columns = []
    for heading in ("image\nquery", "text\nquery", "\naverage"):
        columns += [*scores(heading), *(numbers("\npaper") if sources else [])]
    listing = table(bold("method"), *columns, *(numbers("differ-\nence") if sources else []))
    _add_rows(listing, [(row.group, [row.name, *_numbers(row, beside=bool(sources))]) for row in report.rows])
    console.print(listing)
    console.print(f"\nMAP (all relevant items, full ranking, ties by expectation); chance {report.chance:.4f}.")
    if sources:
        named = "; ".join(f"{_PAPERS[paper]}, {number}" for paper, number in sources)
        console.print(f"paper: as printed in {named}.")
        if not all(row.same_features for row in report.rows):
            console.print("* measured there on other features.")
    for note in report.notes:
        console.print(note)


def _add_rows(listing: Table, rows: list[tuple[str, list[str]]]) -> None:
    """Add rows under the headings of their groups."""
    current = ""
    for group, cells in rows:
        if group != current:
            listing.add_section()
            listing.add_row(group)
            current = group
        listing.add_row(f"  {cells[0]}" if group else cells[0], *cells[1:])


def _numbers(row: Row, *, beside: bool) -> list[str]:
    mark = " " if row.same_features else "*"
    cells = []
    for name in ("image_query", "text_query", "average"):
        cells.append(f"{getattr(row, name):.4f}")
        if beside:
            cells.append("–" if row.published is None else f"{getattr(row.published, name):.4f}{mark}")
    if beside:
        cells.append(or_dash(row.difference, "+.4f"))
    return cells


def _print_choices(report: TaskReport, console: Console) -> None:
    # A table in the layout of a paper shows what the paper shows: the parameters, and the seconds of a fit.
    as_printed = any(row.group for row in report.rows)
    columns = numbers("held-out MAP", "test, 95 % interval", "fit, s", *(["paper, s"] if as_printed else []))
    listing = table(bold("method"), *columns, *map(folded, ("chosen", "paper") if as_printed else ("model",)))
    rows = [(row.group, [*_outcome(row), *(_beside_paper(row) if as_printed else [row.model])]) for row in report.rows]
    _add_rows(listing, rows)
    console.print(listing)
    if as_printed:
        console.print("\npaper, s: training time on the authors' machine; paper: the parameters they chose.")


def _outcome(row: Row) -> list[str]:
    return [
        row.name,
        f"{row.validation:.4f} ± {row.validation_deviation:.4f}",
        f"{row.interval[0]:.4f}–{row.interval[1]:.4f}",
        f"{row.fit_seconds:.2f}",
    ]


def _beside_paper(row: Row) -> list[str]:
    chosen = ", ".join(f"{name.removeprefix('model__')}={_short(value)}" for name, value in row.parameters.items())
    if row.training is None:
        return ["–", chosen, "–"]
    return [f"{row.training.seconds:.2f}", chosen, row.training.parameters]


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print_distances(report: TaskReport, console: Console) -> None:
    names = {"euclidean": "ℓ2", "l1": "ℓ1", "kl": "KL", "cosine": "NC", "pearson": "NCc"}
    published = any(row.published is not None for row in report.distances)
    columns = numbers("ours", "± over hold-outs", *(["paper*"] if published else []))
    listing = table(bold("method"), whole("distance"), *columns)
    for row in report.distances:
        cells = [f"{row.average:.4f}", f"{row.deviation:.4f}", *([or_dash(row.published, ".4f")] if published else [])]
        listing.add_row(row.method, names[row.metric], *cells)
    console.print(listing)
    if published:
        console.print(
            "paper*: Costa Pereira et al. 2014, Table IV, on a validation part and on other features; its CM uses KCCA."
        )


def _print_sensitivity(curve: SensitivityCurve, console: Console) -> None:
    listing = table(*scores("value"), *numbers(*(way.replace("_", " ") for way in DIRECTIONS)))
    for number, value in enumerate(curve.values):
        cells = (f"{curve.means[way][number]:.4f} ± {curve.deviations[way][number]:.4f}" for way in DIRECTIONS)
        listing.add_row(f"{value:g}", *cells)
    console.print(listing)


def draw_bench(reports: Sequence[TaskReport], folder: Path) -> list[Path]:
    """Draw precision–recall of the compared methods and every sensitivity curve, and return the files."""
    drawn = {f"{report.task}-{name}.png": figure for report in reports for name, figure in _figures(report).items()}
    return save_figures(drawn, folder)


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
    return named or [row for row in rows if row.name != _CHANCE][:MAX_PRECISION_RECALL_METHODS]
