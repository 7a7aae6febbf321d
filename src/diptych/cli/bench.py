"""``diptych bench``: every method on one task, tuned on training data, beside the published numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def bench(
    task: Annotated[
        str,
        typer.Argument(
            help="wikipedia, wikipedia-plain, pascal or scenes; auto: wikipedia if it is here, else scenes."
        ),
    ] = "auto",
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this row, such as marginal-sm; may be repeated.")
    ] = None,
    distances: Annotated[bool, typer.Option(help="Also compare the distance measures.")] = True,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fit everything again instead of going on where a run stopped.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Run a benchmark: choose every parameter on hold-outs of the training part, then ask the test part once."""
    import json

    from diptych.benchmark import find_task, run_task
    from diptych.cli.bench_report import print_bench
    from diptych.cli.files import check_writable_file, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.data import cache_folder, find_dataset

    stages = Stages(quiet=quiet)
    if task == "auto":
        task = "wikipedia" if find_dataset("wikipedia").is_available else "scenes"
        stages.note(f"running the benchmark {task!r}")
    chosen = find_task(task)
    if output is not None:
        check_writable_file(output)
    report = run_task(
        chosen,
        methods=method,
        distances=distances,
        n_jobs=jobs or os.cpu_count() or 1,
        folder=None if fresh else cache_folder() / "tuning",
        stage=lambda title: stages.run(title, title),
    )
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        write_text(output, json.dumps(report.as_json(), indent=2) + "\n")
        stages.note(f"numbers: {output}")
    print_bench(report, results())
