"""``diptych bench diff``, ``pack``, ``report`` and ``reproduction``: folders of results compared, packed, as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from diptych.cli.console.output import (
    bold,
    check_folder,
    check_writable_file,
    numbers,
    or_dash,
    print_json,
    print_outcome,
    results,
    table,
    whole,
    write_text,
)
from diptych.cli.console.progress import Stages
from diptych.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from diptych.benchmark.reporting import Observation
    from diptych.benchmark.results import ResultsDifference

_MOST = 20


def bench_diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A folder of results.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0, help="Differences up to this size do not count.")
    ] = 1e-6,
    as_json: JsonOption = False,
) -> None:
    """Compare the numbers of two runs, unit by unit; the exit status is 1 where they differ beyond the tolerance."""
    from diptych.benchmark.results import ResultFolder, compare_results

    found = compare_results(ResultFolder(first), ResultFolder(second), tolerance=tolerance)
    if as_json:
        print_json(asdict(found))
    else:
        print_difference(found, tolerance, results())
    if found.units:
        raise typer.Exit(1)


def print_difference(found: ResultsDifference, tolerance: float, console: Console) -> None:
    """Print the methods and units that differ, and what only one folder has."""
    if found.methods:
        console.print("Methods, main measure, mean of both directions and all folds\n", style="bold")
        listing = table(whole("task"), whole("method"), *numbers("A", "B", "B − A", "p"))
        for one in found.methods:
            cells = (f"{one.first:.6f}", f"{one.second:.6f}", f"{one.difference:+.2e}", or_dash(one.p_value, ".4f"))
            listing.add_row(one.task, one.method, *cells)
        console.print(listing)
        console.print("\np: paired randomisation test over all queries of both directions.\n")
    for unit in found.units[:_MOST]:
        line = f"{unit.task}, {unit.method}, fold {unit.fold}: {unit.largest:.2e} in {unit.where}"
        console.print(line, markup=False)
    if len(found.units) > _MOST:
        console.print(f"and {len(found.units) - _MOST} more units")
    for name, only in (("A", found.only_first), ("B", found.only_second)):
        if only:
            console.print(f"only in {name}: {len(only)} units, such as {', '.join(map(str, only[0]))}", markup=False)
    console.print(
        f"{found.compared} units in both, {len(found.units)} of them differ by more than {tolerance:g}", markup=False
    )


def bench_pack(
    source: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder that `bench run` has filled.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where <task>.jsonl.gz go.")],
    as_json: JsonOption = False,
) -> None:
    """Pack the result files of every task into one compressed file, and those of studies; commands read both forms."""
    from diptych.benchmark.results import pack_results

    check_folder(target)
    files = pack_results(source, target)
    print_outcome("\n".join(map(str, files)), {"files": files}, as_json=as_json)


def bench_report(
    results: Annotated[Path, typer.Argument(help="The folder that `diptych bench run` filled.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write report.html, .md, .tex and results.csv into.")
    ] = Path("report"),
    samples: Annotated[bool, typer.Option(help="Show queries with the answers of the best method and of CCA.")] = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the report of a benchmark: leaderboards with significance groups, curves, and tested observations."""
    from diptych.benchmark.reporting import Report, build_report, sample_sheets
    from diptych.benchmark.results import ResultFolder
    from diptych.cli.console.output import results as console

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
    if as_json:
        print_json({"folder": output, "observations": [asdict(one) for one in report.observations]})
    else:
        print_observations(report.observations, console())


def print_observations(observations: Sequence[Observation], console: Console) -> None:
    """Print every claim with its verdict, p-value and evidence."""
    from diptych.benchmark.reporting.observations import format_p_value

    if not observations:
        console.print("There is no task with seen or unseen classes, so that no observation could be tested.")
        return
    listing = table("claim", "data", bold("verdict"), *numbers("p"), "evidence", title="Observations")
    for one in observations:
        listing.add_row(one.claim, one.where, one.verdict, format_p_value(one.p_value), one.evidence)
    console.print(listing)


def bench_reproduction(
    results: Annotated[Path, typer.Argument(help="Results of `bench run`; those of studies in its folder `studies`.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The Markdown page to write.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Set every number that the papers print beside ours, with the command that prints it, or say why there is none."""
    from diptych.benchmark.reporting import reproduction_page
    from diptych.benchmark.reproduction import StoredResults, answer_rows
    from diptych.cli.console.output import results as console

    if output is not None:
        check_writable_file(output)
    answers = answer_rows(StoredResults(results))
    page = reproduction_page(answers)
    if output is not None:
        write_text(output, page)
    if as_json:
        print_json([asdict(answer) for answer in answers])
    else:
        console().print(page if output is None else f"page: {output}", markup=False, soft_wrap=True)
