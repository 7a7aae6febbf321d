"""``diptych bench costa-pereira``: the experiments of Costa Pereira et al. (2014), beside the printed numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from diptych.cli.console.output import bold, folded, numbers, scores, table, whole
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import check_report_files, finish_reports, save_figures
from diptych.cli.options import JobsOption, JsonOption, OutputOption, QuietOption
from diptych.errors import MissingDataError, MissingPackageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from diptych.benchmark.studies.costa_pereira import CostaPereiraReport, MapRow
    from diptych.cli.console.progress import Advance

_DISTANCES = {"euclidean": "ℓ2", "l1": "ℓ1", "kl": "KL", "cosine": "NC", "pearson": "NCc"}


def bench_costa_pereira(
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="wikipedia, pascal or tvgraz; may be repeated. Default: all of them."),
    ] = None,
    jobs: JobsOption = None,
    output: OutputOption = None,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", help="Draw precision–recall, MAP per category and confusion into this folder."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare distances, correlation methods, and correlation, abstraction and both together (CM, SM, SCM).

    One random fifth of the training part is for choosing; then everything is fitted on the whole training part and the
    test part is asked once. A data set that is not on this machine is named and left out.
    """
    from diptych.benchmark.studies.costa_pereira import COSTA_PEREIRA, find_costa_pereira, run_costa_pereira

    tasks = [find_costa_pereira(name) for name in data] if data else [*COSTA_PEREIRA]
    check_report_files(output, plots)
    stages = Stages(quiet=quiet)
    reports, lacking = [], []
    for task in tasks:
        try:
            reports.append(
                run_costa_pereira(task, n_jobs=jobs or os.cpu_count() or 1, stage=partial(_stage, stages, task.name))
            )
        except (MissingDataError, MissingPackageError) as error:
            lacking.append(error)
            stages.note(f"{task.name} is left out: {error}")
    if not reports:
        raise lacking[0]
    finish_reports(reports, print_costa_pereira, stages, output, plots, draw_costa_pereira, as_json=as_json)


def _stage(stages: Stages, task: str, title: str) -> AbstractContextManager[Advance]:
    return stages.run(f"{task}: {title}", f"{task}: {title}")


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
    listing = table(bold("category"), *numbers("training", "of them for validation", "test", "all"))
    for category, counts in report.pairs.items():
        listing.add_row(category, *(f"{count:,}" for count in counts.values()))
    console.print(listing)


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
    from diptych import figures

    title = report.title.partition(",")[0]
    curves = {method: detail.precision for method, detail in report.details.items()}
    yield "precision-recall", figures.method_precision_recall(curves, report.chance.precision, title=title)
    for method, detail in report.details.items():
        name = f"{title}, {method}"
        bars = figures.category_bars(detail.categories, report.chance.categories, title=name)
        yield f"categories-{method.lower()}", bars
        yield f"confusion-{method.lower()}", figures.confusion(detail.confusion, title=name)
