"""How ``bench run`` prints what it found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from rich.console import Console

from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.running import RunReport, Unit
from diptych.cli.terminal import notes, table
from diptych.space import DIRECTIONS


def print_units(units: Sequence[Unit], console: Console) -> None:
    """Print one line for each unit."""
    for unit in units:
        console.print(f"{unit.task} {unit.method} {unit.fold}", markup=False)


def print_run(report: RunReport, units: Sequence[Unit], folder: ResultFolder, console: Console) -> None:
    """Print a table for each task, best methods first, and what was run, kept and failed."""
    wanted = {(unit.task, unit.method, unit.fold) for unit in units}
    records = [record for record in folder.records() if record.key in wanted] if folder.path.is_dir() else []
    for number, (_, group) in enumerate(groupby(records, key=lambda record: record.task)):
        if number:
            console.print()
        _print_task(list(group), console)
    notes().print(_summary(report, folder), markup=False)


def _summary(report: RunReport, folder: ResultFolder) -> str:
    parts = [f"{len(report.done)} run", f"{report.kept} kept"]
    if report.outdated:
        parts.append(f"{report.outdated} of them made anew, because their declaration has changed")
    if report.missing:
        reasons = dict.fromkeys(failure.message for failure in report.missing)
        parts.append(f"{len(report.missing)} skipped ({'; '.join(reasons)})")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    return f"{', '.join(parts)}; results: {folder.path}"


def _print_task(records: Sequence[Record], console: Console) -> None:
    first = records[0]
    main = next(iter(first.measures))
    console.print(f"{first.task}: {first.features}\n", style="bold", markup=False)
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in ("image query", "text query", "average", "± folds", "folds", "seconds"):
        listing.add_column(heading, justify="right", no_wrap=True)
    methods = {name: list(group) for name, group in groupby(records, key=lambda record: record.method)}
    for group in sorted(methods.values(), key=lambda group: -_mean(group, main)):
        ways = [f"{np.mean([record.measures[main][way] for record in group]):.4f}" for way in DIRECTIONS]
        averages = [record.average(main) for record in group]
        seconds = np.mean([sum(record.seconds.values()) for record in group])
        spread = f"{np.std(averages):.4f}" if len(group) > 1 else "–"
        cells = [group[0].method_title, *ways, f"{np.mean(averages):.4f}", spread, str(len(group)), f"{seconds:.2f}"]
        listing.add_row(*cells)
    console.print(listing)
    chance = np.mean([np.mean(list(record.chance[main].values())) for record in records])
    console.print(f"\n{main.replace('AP()', 'MAP')}, mean over folds; chance {chance:.4f}.", markup=False)


def _mean(records: Sequence[Record], measure: str) -> float:
    return float(np.mean([record.average(measure) for record in records]))
