"""``diptych bench``: every method on one task or study, tuned on training data, beside the published numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def bench(
    task: Annotated[
        str,
        typer.Argument(
            help="wikipedia, wikipedia-plain, pascal or scenes; pairwise: the tables of Menon et al. 2015, singly "
            "pairwise-wikipedia, pairwise-pascal or pairwise-tvgraz; auto: wikipedia if it is here, else scenes."
        ),
    ] = "auto",
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this row, such as marginal-sm; may be repeated.")
    ] = None,
    distances: Annotated[bool, typer.Option(help="Also compare the distance measures.")] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: coarser grids and two hold-outs; the table says so.")
    ] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fit everything again instead of going on where a run stopped.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Draw precision–recall and sensitivity curves into this folder.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Run a benchmark: choose every parameter on hold-outs of the training part, then ask the test part once."""
    import json

    from diptych import figures
    from diptych.benchmark import find_study, run_study, study_names
    from diptych.cli.bench_plots import draw_bench
    from diptych.cli.bench_report import print_study
    from diptych.cli.files import check_folder, check_writable_file, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.data import cache_folder, find_dataset

    stages = Stages(quiet=quiet)
    if task == "auto":
        task = "wikipedia" if find_dataset("wikipedia").is_available else "scenes"
        stages.note(f"running the benchmark {task!r}")
    study = find_study(task)
    if output is not None:
        check_writable_file(output)
    if plots is not None:
        figures.require_matplotlib()
        check_folder(plots)
    report = run_study(
        study.coarser() if quick else study,
        methods=method,
        distances=distances,
        n_jobs=jobs or os.cpu_count() or 1,
        folder=None if fresh else cache_folder() / "tuning",
        stage=lambda title: stages.run(title, title),
    )
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        document = report.as_json() if task in study_names() else report.reports[0].as_json()
        write_text(output, json.dumps(document, indent=2) + "\n")
        stages.note(f"numbers: {output}")
    if plots is not None:
        stages.note(f"figures: {', '.join(map(str, draw_bench(report.reports, plots)))}")
    print_study(report, results())
