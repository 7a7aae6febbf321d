"""``diptych bench costa-pereira``: the experiments of Costa Pereira et al. (2014), beside the printed numbers."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from diptych.cli.stages import Advance, Stages


def bench_costa_pereira(
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="wikipedia, pascal or tvgraz; may be repeated. Default: all of them."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")] = None,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", help="Draw precision–recall, MAP per category and confusion into this folder."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Compare distances, correlation methods, and correlation, abstraction and both together (CM, SM, SCM).

    One random fifth of the training part is for choosing; then everything is fitted on the whole training part and the
    test part is asked once. A data set that is not on this machine is named and left out.
    """
    import json

    from diptych import figures
    from diptych.benchmark.costa_pereira import COSTA_PEREIRA, find_costa_pereira, run_costa_pereira
    from diptych.cli.bench_costa_pereira_plots import draw_costa_pereira
    from diptych.cli.bench_costa_pereira_report import print_costa_pereira
    from diptych.cli.files import check_folder, check_writable_file, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.errors import MissingDataError, MissingPackageError

    tasks = [find_costa_pereira(name) for name in data] if data else [*COSTA_PEREIRA]
    if output is not None:
        check_writable_file(output)
    if plots is not None:
        figures.require_matplotlib()
        check_folder(plots)
    stages = Stages(quiet=quiet)
    reports, lacking = [], []
    for task in tasks:
        try:
            reports.append(
                run_costa_pereira(
                    task,
                    n_jobs=jobs or os.cpu_count() or 1,
                    stage=partial(_stage, stages, task.name),
                )
            )
        except (MissingDataError, MissingPackageError) as error:
            lacking.append(error)
            stages.note(f"{task.name} is left out: {error}")
    if not reports:
        raise lacking[0]
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        write_text(output, json.dumps([report.as_json() for report in reports], indent=2) + "\n")
        stages.note(f"numbers: {output}")
    if plots is not None:
        stages.note(f"figures: {', '.join(map(str, draw_costa_pereira(reports, plots)))}")
    console = results()
    for number, report in enumerate(reports):
        if number:
            console.print()
        print_costa_pereira(report, console)


def _stage(stages: Stages, task: str, title: str) -> AbstractContextManager[Advance]:
    return stages.run(f"{task}: {title}", f"{task}: {title}")
