"""How ``diptych bench`` prints what it found."""

from __future__ import annotations

from rich.console import Console

from diptych.benchmark import Row, TaskReport
from diptych.cli.terminal import table

_PAPERS = {"001": "Menon et al. 2015", "004": "Costa Pereira et al. 2014"}


def print_bench(report: TaskReport, console: Console) -> None:
    """Print the table of methods, what was chosen for each and, if compared, the distance measures."""
    console.print(f"{report.title}\n", style="bold")
    _print_methods(report, console)
    console.print("\nChosen on hold-outs of the training part\n", style="bold")
    _print_choices(report, console)
    if report.distances:
        console.print("\nDistance measures, average MAP on hold-outs of the training part\n", style="bold")
        _print_distances(report, console)


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
    for row in report.rows:
        listing.add_row(row.name, *_numbers(row, beside=bool(sources)))
    console.print(listing)
    console.print(f"\nMAP (all relevant items, full ranking, ties by expectation); chance {report.chance:.4f}.")
    if sources:
        named = "; ".join(f"{_PAPERS[paper]}, {number}" for paper, number in sources)
        console.print(f"paper: as printed in {named}.")
        if not all(row.same_features for row in report.rows):
            console.print("* measured there on other features.")


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
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in ("held-out MAP", "test, 95 % interval", "fit, s"):
        listing.add_column(heading, justify="right", no_wrap=True)
    listing.add_column("model", overflow="fold")
    for row in report.rows:
        held_out = f"{row.validation:.4f} ± {row.validation_deviation:.4f}"
        interval = f"{row.interval[0]:.4f}–{row.interval[1]:.4f}"
        listing.add_row(row.name, held_out, interval, f"{row.fit_seconds:.2f}", row.model)
    console.print(listing)


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
