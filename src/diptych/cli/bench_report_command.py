"""``diptych bench report``: a folder of results as a page, tables and tested observations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench_report(
    results: Annotated[Path, typer.Argument(help="The folder that `diptych bench run` filled.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write report.html, .md, .tex and results.csv into.")
    ] = Path("report"),
    samples: Annotated[bool, typer.Option(help="Show queries with the answers of the best method and of CCA.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Make the report of a benchmark: leaderboards with significance groups, curves, and tested observations."""
    from diptych.benchmark.reporting import Report, build_report, sample_sheets
    from diptych.benchmark.results import ResultFolder
    from diptych.cli.bench_observations import print_observations
    from diptych.cli.files import check_folder, write_text
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results as console

    stages = Stages(quiet=quiet)
    check_folder(output)
    with stages.run("reading results", "reading results"):
        report = build_report(ResultFolder(results).records())
    if samples:
        with stages.run("asking samples", "asking samples"):
            report = Report(report.tasks, sample_sheets(report.tasks))
    with stages.run("testing differences", "testing differences"):
        forms = {
            "report.html": report.as_html(),
            "report.md": report.as_markdown(),
            "report.tex": report.as_latex(),
            "results.csv": report.as_csv(),
        }
    for name, text in forms.items():
        write_text(output / name, text)
    stages.note(f"report: {output / 'report.html'}")
    print_observations(report.observations, console())
