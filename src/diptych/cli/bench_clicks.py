"""``diptych bench clicks``: methods for click logs on human judgements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench_clicks(
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this method, such as text2image; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of noise that are averaged.")] = 5,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fit everything again instead of going on where a run stopped.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Draw noise curves and groups of visualness into this folder.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Compare methods that learn from a click log on Flickr8k's human judgements of captions as queries.

    The click log is simulated from the training captions; the judgements are not. Tables have the layout of Dong et
    al. (2018), with what they print beside ours.
    """
    import json

    from diptych import figures
    from diptych.benchmark.web import flickr8k_web, run_web
    from diptych.benchmark.web.running import chosen_methods
    from diptych.cli.bench_clicks_plots import draw_click_benchmark
    from diptych.cli.bench_clicks_report import print_click_benchmark
    from diptych.cli.files import check_folder, check_writable_file, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.data import cache_folder

    # Before the data are loaded, which takes a while and a data set.
    chosen_methods(method)
    if output is not None:
        check_writable_file(output)
    if plots is not None:
        figures.require_matplotlib()
        check_folder(plots)
    stages = Stages(quiet=quiet)
    with stages.run("data", "loading Flickr8k and simulating clicks"):
        data = flickr8k_web()
    report = run_web(
        data,
        methods=method,
        folder=None if fresh else cache_folder() / "web",
        stage=lambda title: stages.run(title, title),
        seeds=seeds,
    )
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        write_text(output, json.dumps(report.as_json(), indent=2) + "\n")
        stages.note(f"numbers: {output}")
    if plots is not None:
        stages.note(f"figures: {', '.join(map(str, draw_click_benchmark(report, plots)))}")
    print_click_benchmark(report, results())
