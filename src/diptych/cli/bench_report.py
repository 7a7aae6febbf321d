"""How ``diptych bench`` prints what it found."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from diptych.benchmark import Row, TaskReport
from diptych.cli.terminal import table

_PAPERS = {"001": "Menon et al. 2015", "004": "Costa Pereira et al. 2014"}


def print_bench(report: TaskReport, console: Console) -> None:
    """Print the table of methods and, if there is one, the table of distance measures."""
    _print_methods(report, console)
    if report.distances:
        console.print()
        _print_distances(report, console)


def _print_methods(report: TaskReport, console: Console) -> None:
    sources = sorted({(row.published.paper, row.published.table) for row in report.rows if row.published})
    listing = table(report.title)
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in ("image query", "text query", "average", "95 % interval"):
        listing.add_column(heading, justify="right", no_wrap=True)
    if sources:
        listing.add_column("paper", justify="right", no_wrap=True)
        listing.add_column("difference", justify="right", no_wrap=True)
    listing.add_column("fit, s", justify="right", no_wrap=True)
    listing.add_column("chosen on training data")
    for row in report.rows:
        numbers = [f"{row.image_query:.4f}", f"{row.text_query:.4f}", f"{row.average:.4f}"]
        numbers.append(f"{row.interval[0]:.4f}–{row.interval[1]:.4f}")
        if sources:
            numbers += _beside(row)
        listing.add_row(row.name, *numbers, f"{row.fit_seconds:.2f}", _settings(row.parameters))
    console.print(listing)
    console.print(f"\nMAP (all relevant items, full ranking, ties by expectation); chance {report.chance:.4f}.")
    if sources:
        named = "; ".join(f"{_PAPERS[paper]}, {number}" for paper, number in sources)
        console.print(f"paper: average of both directions as printed in {named}.")
        if any(paper == "004" for paper, _ in sources):
            console.print("* measured there on other features than those distributed with the data set.")


def _beside(row: Row) -> list[str]:
    if row.published is None or row.difference is None:
        return ["–", "–"]
    mark = "*" if row.published.paper == "004" else " "
    return [f"{row.published.average:.4f}{mark}", f"{row.difference:+.4f}"]


def _settings(parameters: dict[str, Any]) -> str:
    named = {name.removeprefix("model__").replace("__", "."): value for name, value in parameters.items()}
    return ", ".join(f"{name}={_short(value)}" for name, value in named.items()) or "–"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print_distances(report: TaskReport, console: Console) -> None:
    names = {"euclidean": "ℓ2", "l1": "ℓ1", "kl": "KL", "cosine": "NC", "pearson": "NCc"}
    published = any(row.published is not None for row in report.distances)
    listing = table("Distance measures, average MAP on hold-outs of the training part")
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
