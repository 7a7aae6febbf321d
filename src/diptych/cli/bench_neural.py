"""``diptych bench neural``: ranking methods and networks beside the values of Zhang et al. (2017)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench_neural(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            help="wikipedia, pascal, flickr8k, flickr30k or coco; may be repeated. Default: those on this machine.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this method, such as ldsp; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each method that draws random numbers.")] = 3,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, for methods that have them; else their own.")
    ] = None,
    pixels: Annotated[
        bool, typer.Option("--pixels", help="MNiL from pixels, too: ResNet-50 fine-tuned; wants a graphics card.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fit everything again instead of going on where a run stopped.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")] = None,
    plots: Annotated[
        Path | None, typer.Option(help="Draw precision by scope, maps of the space and answers into this folder.")
    ] = None,
    inside: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to look into for --plots and --save.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Save that method's model, learned with seed 0, in here.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Compare ranking methods and networks: MAP@50 and MAP on classes, recall on captions, chance and the paper beside.

    Methods keep their defaults. MNiL learns from features and words; from pixels when asked.
    """
    import json

    from diptych.benchmark.neural import run_neural
    from diptych.cli.bench_neural_inside import Inside
    from diptych.cli.bench_neural_report import print_neural
    from diptych.cli.bench_neural_tasks import chosen_tasks
    from diptych.cli.files import check_writable_file, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.data import cache_folder

    stages = Stages(quiet=quiet)
    tasks = chosen_tasks(data, stages)
    if output is not None:
        check_writable_file(output)
    look = Inside(inside, plots, save)
    look.check(method)
    reports = []
    for task in tasks:
        with stages.run(f"load {task.name}", f"loading {task.name}"):
            loaded = task.load()
        report = run_neural(
            task,
            methods=method,
            seeds=seeds,
            epochs=epochs,
            pixels=pixels,
            folder=None if fresh else cache_folder() / "neural",
            stage=lambda title: stages.run(title, title),
            data=loaded,
        )
        look.look(report, loaded, stages)
        reports.append(report)
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        write_text(output, json.dumps([report.as_json() for report in reports], indent=2) + "\n")
        stages.note(f"numbers: {output}")
    console = results()
    for number, report in enumerate(reports):
        if number:
            console.print()
        print_neural(report, console)
