"""How ``diptych bench`` prints what it found."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from diptych.benchmark import Row, SensitivityCurve, StudyReport, TaskReport
from diptych.cli.terminal import table
from diptych.space import DIRECTIONS

_PAPERS = {"001": "Menon et al. 2015", "004": "Costa Pereira et al. 2014"}


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
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in ("image\nquery", "text\nquery", "\naverage"):
        listing.add_column(heading, justify="right", no_wrap=True, style="bold")
        if sources:
            listing.add_column("\npaper", justify="right", no_wrap=True)
    if sources:
        listing.add_column("differ-\nence", justify="right", no_wrap=True)
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
    numbers = []
    for name in ("image_query", "text_query", "average"):
        numbers.append(f"{getattr(row, name):.4f}")
        if beside:
            numbers.append("–" if row.published is None else f"{getattr(row.published, name):.4f}{mark}")
    if beside:
        numbers.append("–" if row.difference is None else f"{row.difference:+.4f}")
    return numbers


def _print_choices(report: TaskReport, console: Console) -> None:
    # A table in the layout of a paper shows what the paper shows: the parameters, and the seconds of a fit.
    as_printed = any(row.group for row in report.rows)
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in ("held-out MAP", "test, 95 % interval", "fit, s", *(["paper, s"] if as_printed else [])):
        listing.add_column(heading, justify="right", no_wrap=True)
    for heading in ("chosen", "paper") if as_printed else ("model",):
        listing.add_column(heading, overflow="fold")
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
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    listing.add_column("distance", no_wrap=True)
    for heading in ("ours", "± over hold-outs", *(["paper*"] if published else [])):
        listing.add_column(heading, justify="right", no_wrap=True)
    for row in report.distances:
        numbers = [f"{row.average:.4f}", f"{row.deviation:.4f}"]
        if published:
            numbers.append("–" if row.published is None else f"{row.published:.4f}")
        listing.add_row(row.method, names[row.metric], *numbers)
    console.print(listing)
    if published:
        console.print(
            "paper*: Costa Pereira et al. 2014, Table IV, on a validation part and on other features; its CM uses KCCA."
        )


def _print_sensitivity(curve: SensitivityCurve, console: Console) -> None:
    listing = table()
    listing.add_column("value", justify="right", no_wrap=True, style="bold")
    for way in DIRECTIONS:
        listing.add_column(way.replace("_", " "), justify="right", no_wrap=True)
    for number, value in enumerate(curve.values):
        cells = (f"{curve.means[way][number]:.4f} ± {curve.deviations[way][number]:.4f}" for way in DIRECTIONS)
        listing.add_row(f"{value:g}", *cells)
    console.print(listing)
