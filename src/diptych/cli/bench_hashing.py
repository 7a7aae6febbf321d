"""``diptych bench hashing``: what codes of each length reach, and what they cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

_QUICK_BITS = (8, 16, 32)
_QUICK_FOLDS = 2
_QUICK_SEARCHED = 100_000


def bench_hashing(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", "-d", help="wikipedia, pascal or flickr8k; may be repeated. Default: those on this machine."
        ),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this method, such as scm-seq; may be repeated.")
    ] = None,
    bits: Annotated[
        list[int] | None,
        typer.Option("--bits", "-b", min=1, help="A length of code; may be repeated. Default: 4, 8, 16, 32, 64, 128."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=1, help="Class divisions, each with a seed of its own. Default: 5.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 8, 16 and 32 bits, two folds; the table says how many.")
    ] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fit everything again instead of going on where a run stopped.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Draw MAP and CMC against bits into this folder.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Compare hashing methods by the length of their codes, for classes that were learned and classes that were not.

    Methods keep their defaults. MAP and CMC are exact under ties and stand beside chance, storage and search speed.
    """
    import json

    from diptych import figures
    from diptych.benchmark.hashing import BITS, run_bit_budget
    from diptych.cli.bench_hashing_plots import draw_bit_budgets
    from diptych.cli.bench_hashing_report import print_bit_budget
    from diptych.cli.bench_hashing_tasks import chosen_tasks
    from diptych.cli.files import check_folder, check_writable_file, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.data import cache_folder

    stages = Stages(quiet=quiet)
    tasks = chosen_tasks(data, stages)
    if output is not None:
        check_writable_file(output)
    if plots is not None:
        figures.require_matplotlib()
        check_folder(plots)
    reports = [
        run_bit_budget(
            task,
            bits=bits or (_QUICK_BITS if quick else BITS),
            methods=method,
            folds=folds or (_QUICK_FOLDS if quick else 5),
            n_jobs=jobs or os.cpu_count() or 1,
            folder=None if fresh else cache_folder() / "hashing",
            stage=lambda title: stages.run(title, title),
            **({"n_searched": _QUICK_SEARCHED} if quick else {}),
        )
        for task in tasks
    ]
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        write_text(output, json.dumps([report.as_json() for report in reports], indent=2) + "\n")
        stages.note(f"numbers: {output}")
    if plots is not None:
        stages.note(f"figures: {', '.join(map(str, draw_bit_budgets(reports, plots)))}")
    console = results()
    for number, report in enumerate(reports):
        if number:
            console.print()
        print_bit_budget(report, console)
