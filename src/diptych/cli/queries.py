"""``diptych queries``: what people ask for, how visual it is, and where the answers fail them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def queries(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="A table of clicks (.tsv, .csv, .jsonl, .parquet, Clickture), or a served collection."
        ),
    ],
    vocabulary: Annotated[
        list[Path] | None,
        typer.Option("--vocabulary", help="A text file of more visible names, one to a line; repeat for several."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the most frequent queries to show.")] = 20,
    plots: Annotated[Path | None, typer.Option("--plots", help="Draw figures into this folder.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the whole report to this JSON file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Report on the queries of a log: their length, how visual they are, which are answered and which are not."""
    from diptych.cli.files import check_folder, check_writable_file, write_text
    from diptych.cli.queries_analysis import analyse_queries
    from diptych.cli.queries_reading import read_queries
    from diptych.cli.queries_report import print_queries
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results
    from diptych.encoders import Visualness, read_vocabulary

    if output is not None:
        check_writable_file(output)
    if plots is not None:
        from diptych.figures import require_matplotlib

        require_matplotlib()
        check_folder(plots)
    stages = Stages(quiet=quiet)
    names = [name for file in vocabulary or [] for name in read_vocabulary(file)]
    with stages.run("read", "reading the log"):
        asked = read_queries(log)
    with stages.count("measure", "measuring queries") as advance:
        report = analyse_queries(asked, Visualness(names), top=top, advance=advance)
    print_queries(report, results())
    if output is not None:
        write_text(output, json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        stages.note(f"report: {output}")
    if plots is not None:
        from diptych.cli.queries_plots import draw_queries

        for file in draw_queries(report, plots, "png"):
            stages.note(f"figure: {file}")
