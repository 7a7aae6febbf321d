"""How ``bench diff`` prints what it found."""

from __future__ import annotations

from rich.console import Console

from diptych.benchmark.results import ResultsDifference
from diptych.cli.terminal import table

_MOST = 20


def print_difference(found: ResultsDifference, tolerance: float, console: Console) -> None:
    """Print the methods and units that differ, and what only one folder has."""
    if found.methods:
        console.print("Methods, main measure, mean of both directions and all folds\n", style="bold")
        listing = table()
        for heading in ("task", "method"):
            listing.add_column(heading, no_wrap=True)
        for heading in ("A", "B", "B − A", "p"):
            listing.add_column(heading, justify="right", no_wrap=True)
        for one in found.methods:
            p_value = "–" if one.p_value is None else f"{one.p_value:.4f}"
            cells = (f"{one.first:.6f}", f"{one.second:.6f}", f"{one.difference:+.2e}", p_value)
            listing.add_row(one.task, one.method, *cells)
        console.print(listing)
        console.print("\np: paired randomisation test over all queries of both directions.\n")
    for unit in found.units[:_MOST]:
        line = f"{unit.task}, {unit.method}, fold {unit.fold}: {unit.largest:.2e} in {unit.where}"
        console.print(line, markup=False)
    if len(found.units) > _MOST:
        console.print(f"and {len(found.units) - _MOST} more units")
    for name, only in (("A", found.only_first), ("B", found.only_second)):
        if only:
            console.print(f"only in {name}: {len(only)} units, such as {', '.join(map(str, only[0]))}", markup=False)
    console.print(
        f"{found.compared} units in both, {len(found.units)} of them differ by more than {tolerance:g}", markup=False
    )
