"""``diptych bench diff``: two folders of results beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench_diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A folder of results.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0, help="Differences up to this size do not count.")
    ] = 1e-6,
) -> None:
    """Compare the numbers of two runs, unit by unit; the exit status is 1 where they differ beyond the tolerance."""
    from diptych.benchmark.results import ResultFolder, compare_results
    from diptych.cli.bench_diff_report import print_difference
    from diptych.cli.terminal import results

    found = compare_results(ResultFolder(first), ResultFolder(second), tolerance=tolerance)
    print_difference(found, tolerance, results())
    if found.units:
        raise typer.Exit(1)
