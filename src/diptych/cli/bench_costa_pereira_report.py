"""How ``diptych bench costa-pereira`` prints what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from diptych.benchmark.costa_pereira_report import CostaPereiraReport, MapRow
from diptych.cli.terminal import table

_DISTANCES = {"euclidean": "ℓ2", "l1": "ℓ1", "kl": "KL", "cosine": "NC", "pearson": "NCc"}


def print_costa_pereira(report: CostaPereiraReport, console: Console) -> None:
    """Print the tables of one data set in the order of the paper."""
    console.print(f"{report.title}\n", style="bold")
    if len(report.representations) > 1:
        console.print(f"Features, MAP of SM on the {report.n_validation} validation pairs\n", style="bold")
        _print_rows(report.representations, console, detail="features")
    console.print("\nDistances (Table IV), MAP on the validation part\n", style="bold")
    _print_rows([replace(row, detail=_DISTANCES[row.detail]) for row in report.distances], console, detail="distance")
    console.print("\nCorrelation methods (Tables V and VI), MAP on the validation part\n", style="bold")
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


def _print_rows(rows: Sequence[MapRow], console: Console, *, detail: str) -> None:
    beside = any(row.published for row in rows)
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    if detail == "distance":
        listing.add_column(detail, no_wrap=True)
    for heading in ("image query", "text query", "average"):
        listing.add_column(heading, justify="right", no_wrap=True, style="bold")
        if beside:
            listing.add_column("paper", justify="right", no_wrap=True)
    if detail != "distance":
        listing.add_column(detail, overflow="fold")
    for row in rows:
        cells = [row.detail] if detail == "distance" else []
        for name in ("image_query", "text_query", "average"):
            cells.append(f"{getattr(row, name):.4f}")
            if beside:
                cells.append("–" if row.published is None else f"{getattr(row.published, name):.3f}")
        listing.add_row(row.method, *cells, *([] if detail == "distance" else [row.detail]))
    console.print(listing)
