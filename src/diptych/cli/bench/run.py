"""``diptych bench run``, ``diff``, ``pack``, ``report`` and ``pages``: methods on tasks, and their results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from diptych.cli.console.output import (
    bold,
    check_folder,
    notes,
    numbers,
    or_dash,
    print_json,
    print_outcome,
    print_table,
    results,
    table,
    whole,
    write_text,
)
from diptych.cli.console.progress import Stages
from diptych.cli.options import JobsOption, JsonOption, PluginOption, QuietOption, SchedulerOption
from diptych.directions import DIRECTIONS
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.benchmark.catalogue import Unit
    from diptych.benchmark.reporting import Observation
    from diptych.benchmark.results import Record, ResultFolder, ResultsDifference
    from diptych.benchmark.runner import Failure, RunReport

_SHOWN = 2


def bench_run(
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", help="Tasks by name or pattern, such as 'extendable-*'; may be repeated."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Methods by name or pattern, such as 'cca,mnil' or '*-16'."),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option("--paper", help="The tasks of a paper: 000 Liu et al., 001 Menon et al., 002 Zhang et al."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: coarser grids, fewer folds and hold-outs, two epochs.")
    ] = False,
    results: Annotated[
        Path, typer.Option("--results", "-r", help="Where the results go; what is there is not run again.")
    ] = Path("results"),
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    plugin: PluginOption = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Features of your own: an npz file with images, texts and perhaps labels and split; a folder with the "
            "same as .npy files; or a CSV with columns image…, text…, label and split. With --paper: the folder that "
            "holds the data sets, instead of DIPTYCH_DATA.",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", min=1, help="Number of class folds, draws or seeds; else the task's own.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed of folds, draws and hold-outs.")] = 0,
    list_only: Annotated[bool, typer.Option("--list", help="Show what would run, and run nothing.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run methods on tasks, each tuned on training data alone, and keep one result file for each method and fold.

    What is done is not repeated: stop a run when you like and start it again. A method that fails is named in one line
    and the others go on; the exit status is then 1.
    """
    from diptych.benchmark import Catalogue, OwnData, Plugin, ResultFolder, run_benchmark
    from diptych.benchmark.papers import tasks_of_paper
    from diptych.cli.console.output import results as results_console

    if paper and data is not None:
        if not data.is_dir():
            raise InvalidInputError(f"{data} is no folder; with --paper, --data names the folder of the data sets")
        os.environ["DIPTYCH_DATA"] = str(data.resolve())  # Processes of this run inherit it.
        data = None
    catalogue = Catalogue(
        plugins=tuple(Plugin.read(path) for path in plugin or ()),
        data=None if data is None else OwnData(str(data.resolve()), seed),
        folds=folds,
        seed=seed,
        quick=quick,
    )
    wanted = [*(task or ()), *((one.name for one in tasks_of_paper(paper)) if paper else ())]
    units = catalogue.units(_listed(wanted) or ["*"], _listed(method or ()) or ["*"])
    if list_only:
        listing = [{"task": unit.task, "method": unit.method, "fold": unit.fold} for unit in units]
        print_outcome("\n".join(" ".join(map(str, row.values())) for row in listing), listing, as_json=as_json)
        return
    check_folder(results)
    folder = ResultFolder(results)
    jobs = jobs or os.cpu_count() or 1
    with unit_progress(Stages(quiet=quiet)) as progress:
        report = run_benchmark(catalogue, units, folder, jobs=jobs, scheduler=scheduler, progress=progress)
    if as_json:
        print_json(run_facts(report, units, folder))
    else:
        print_run(report, units, folder, results_console())
    if report.failed or (report.missing and not report.done and not report.kept):
        raise typer.Exit(1)


def _listed(words: Sequence[str]) -> list[str]:
    """Return the words, those with commas as several."""
    return [part for word in words for part in word.split(",") if part]


@contextmanager
def unit_progress(stages: Stages) -> Iterator[Callable[[Record | Failure | None, Sequence[Unit], int], None]]:
    """Show how many units are done and which run; failures are named at once, in one line."""
    from diptych.benchmark import Failure

    told: set[str] = set()
    with stages.run("units", "running") as advance:

        def take(outcome: Record | Failure | None, waiting: Sequence[Unit], total: int) -> None:
            # Units start in their order, so that the first of those without a result are the ones that run.
            advance(total - len(waiting), total, f" {'; '.join(map(str, waiting[:_SHOWN]))}")
            if isinstance(outcome, Failure):
                # What a method lacks it lacks on every fold; once is enough.
                line = f"{outcome.unit.method if outcome.missing else outcome.unit}: {outcome.message}"
                if line not in told:
                    told.add(line)
                    stages.note(f"{'skipped' if outcome.missing else 'failed'} {line}")

        yield take


def run_facts(report: RunReport, units: Sequence[Unit], folder: ResultFolder) -> dict[str, Any]:
    """Return the measures of every unit, and what was run, kept and failed."""
    ends = {"failed": report.failed, "skipped": report.missing}
    return {
        "results": folder.path,
        "run": len(report.done),
        "kept": report.kept,
        **{name: {str(each.unit): each.message for each in failures} for name, failures in ends.items()},
        "units": [
            {"task": record.task, "method": record.method, "fold": record.fold, "measures": record.measures}
            for record in _records(units, folder)
        ],
    }


def _records(units: Sequence[Unit], folder: ResultFolder) -> list[Record]:
    wanted = {(unit.task, unit.method, unit.fold) for unit in units}
    return [record for record in folder.records() if record.key in wanted] if folder.path.is_dir() else []


def print_run(report: RunReport, units: Sequence[Unit], folder: ResultFolder, console: Console) -> None:
    """Print a table for each task, best methods first, and what was run, kept and failed."""
    for number, (_, group) in enumerate(groupby(_records(units, folder), key=lambda record: record.task)):
        if number:
            console.print()
        _print_task(list(group), console)
    notes().print(_summary(report, folder), markup=False)


def _summary(report: RunReport, folder: ResultFolder) -> str:
    parts = [f"{len(report.done)} run", f"{report.kept} kept"]
    if report.outdated:
        parts.append(f"{report.outdated} of them made anew, because their declaration has changed")
    if report.missing:
        reasons = dict.fromkeys(failure.message for failure in report.missing)
        parts.append(f"{len(report.missing)} skipped ({'; '.join(reasons)})")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    return f"{', '.join(parts)}; results: {folder.path}"


def _print_task(records: Sequence[Record], console: Console) -> None:
    first = records[0]
    main = next(iter(first.measures))
    console.print(f"{first.task}: {first.features}\n", style="bold", markup=False)
    printed = {record.method: _printed(record, main) for record in records}
    beside = numbers("paper") if any(value is not None for value in printed.values()) else []
    columns = numbers("image query", "text query", "average"), beside, numbers("± folds", "folds", "seconds")
    listing = table(bold("method"), *(column for part in columns for column in part))
    methods = {name: list(group) for name, group in groupby(records, key=lambda record: record.method)}
    for group in sorted(methods.values(), key=lambda group: -fmean([one.average(main) for one in group])):
        ways = [f"{fmean([record.measures[main][way] for record in group]):.4f}" for way in DIRECTIONS]
        averages = [record.average(main) for record in group]
        seconds = fmean([sum(record.seconds.values()) for record in group])
        spread = f"{stdev(averages):.4f}" if len(group) > 1 else "–"
        paper = [or_dash(printed[group[0].method], ".4f")] if beside else []
        means = [*ways, f"{fmean(averages):.4f}", *paper]
        listing.add_row(group[0].method_title, *means, spread, str(len(group)), f"{seconds:.2f}")
    console.print(listing)
    chance = fmean([fmean(record.chance[main].values()) for record in records])
    console.print(f"\n{main.replace('AP()', 'MAP')}, mean over folds; chance {chance:.4f}.", markup=False)


def _printed(record: Record, measure: str) -> float | None:
    """Return the mean of both directions that a paper prints for the method on this task, or None."""
    from diptych.benchmark import declared_tasks
    from diptych.benchmark.published import printed_beside

    place = next((task.printed for task in declared_tasks() if task.name == record.task), None)
    values = printed_beside(place, record.method_title).get(measure) if place else None
    return fmean(values.values()) if values else None


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


def bench_export_splits(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder that gets the files.")],
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="Tasks by name or pattern; may be repeated. Default: all.")
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Write the rows that methods read, too: <fold>.npz.")
    ] = False,
    folds: Annotated[int | None, typer.Option("--folds", min=1, help="Only the first folds of each task.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write classes, items and hold-outs of every fold as files for other tools, with their digests.

    A data set that is not on this machine is named and left out.
    """
    from diptych.benchmark import Catalogue
    from diptych.benchmark.exchange import export_splits
    from diptych.errors import MissingDataError

    catalogue = Catalogue()
    names = dict.fromkeys(unit.task for unit in catalogue.units(_listed(task or ()) or ["*"]))
    check_folder(output)
    stages = Stages(quiet=quiet)
    tasks = []
    for name in names:
        try:
            catalogue.task(name).data.folder()
        except MissingDataError as error:
            stages.note(f"{name} is left out: {error}")
        else:
            tasks.append(catalogue.task(name))
    with stages.run("export", f"writing {len(tasks)} tasks"):
        files = export_splits(tasks, output, features=features, folds=folds)
    print_outcome(f"{len(files):,} files in {output}", {"files": files}, as_json=as_json)


def bench_report(
    results: Annotated[Path, typer.Argument(help="The folder that `diptych bench run` filled.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write report.html, .md, .tex and results.csv into.")
    ] = Path("report"),
    samples: Annotated[bool, typer.Option(help="Show queries with the answers of the best method and of CCA.")] = True,
    samples_of: Annotated[
        list[str] | None,
        typer.Option("--samples-of", help="Show the answers of these methods, on every task that has results of one."),
    ] = None,
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
            report = Report(report.tasks, sample_sheets(report.tasks, methods=_listed(samples_of or ())))
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
    rows = ([one.claim, one.where, one.verdict, format_p_value(one.p_value), one.evidence] for one in observations)
    print_table(["claim", "data", bold("verdict"), *numbers("p"), "evidence"], rows, console, title="Observations")


def bench_pages(
    results: Annotated[Path, typer.Argument(help="Results of `bench run`; those of studies in its folder `studies`.")],
    documents: Annotated[Path, typer.Argument(help="The folder of the documents.")] = Path("docs/results"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 where a page is stale.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the tables of the documents from stored results, and the pages of the papers' numbers and items."""
    from diptych.benchmark.reporting.pages import made_pages
    from diptych.benchmark.reporting.reproduction import StoredResults

    if not documents.is_dir():
        raise InvalidInputError(f"{documents} is no folder of documents; name one, such as docs/results")
    made = made_pages(StoredResults(results), documents)
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in () if check else stale:
        write_text(path, made[path])
    outcome = [f"{'stale' if check else 'written'}: {path}" for path in stale] or ["every page is up to date"]
    print_outcome("\n".join(outcome), {"stale": stale, "pages": list(made)}, as_json=as_json)
    if check and stale:
        raise typer.Exit(1)
