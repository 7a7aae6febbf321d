"""``diptych bench run``: many methods on many tasks, one result file for each unit of work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from diptych.cli.console.output import bold, check_folder, notes, numbers, print_json, print_outcome, table
from diptych.cli.options import JobsOption, JsonOption, QuietOption, SchedulerOption
from diptych.directions import DIRECTIONS

if TYPE_CHECKING:
    from diptych.benchmark.results import Record, ResultFolder
    from diptych.benchmark.running import Failure, RunReport, Unit

_SHOWN = 2


def bench_run(
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", help="Tasks whose name matches, such as 'extendable-*'; may be repeated."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Methods whose name matches, such as 'cca' or '*-16'; may be repeated."),
    ] = None,
    results: Annotated[
        Path, typer.Option("--results", "-r", help="Where the results go; what is there is not run again.")
    ] = Path("results"),
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    plugin: Annotated[
        list[Path] | None, typer.Option("--plugin", help="A Python file with methods of your own; may be repeated.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Features of your own: an npz file with images, texts and perhaps labels and split; a folder with the "
            "same as .npy files; or a CSV with columns image…, text…, label and split.",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", min=1, help="Number of class folds or draws; by default the task's own.")
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
    from diptych.benchmark.results import ResultFolder
    from diptych.benchmark.running import Catalogue, ClusterEngine, LocalEngine, OwnData, Plugin, run_benchmark
    from diptych.cli.console.output import results as results_console

    catalogue = Catalogue(
        plugins=tuple(Plugin.read(path) for path in plugin or ()),
        data=None if data is None else OwnData(str(data.resolve()), seed),
        folds=folds,
        seed=seed,
    )
    units = catalogue.units(task or ["*"], method or ["*"])
    if list_only:
        listing = [{"task": unit.task, "method": unit.method, "fold": unit.fold} for unit in units]
        print_outcome("\n".join(" ".join(map(str, row.values())) for row in listing), listing, as_json=as_json)
        return
    check_folder(results)
    folder = ResultFolder(results)
    engine = LocalEngine(jobs or os.cpu_count() or 1) if scheduler is None else ClusterEngine(scheduler)
    with BenchProgress(quiet=quiet, at_once=jobs or os.cpu_count() or 1) as progress:
        report = run_benchmark(catalogue, units, folder, engine=engine, progress=progress)
    if as_json:
        print_json(run_facts(report, units, folder))
    else:
        print_run(report, units, folder, results_console())
    if report.failed or (report.missing and not report.done and not report.kept):
        raise typer.Exit(1)


class BenchProgress:
    """A bar with the units that are running; failures are named at once, in one line."""

    def __init__(self, *, quiet: bool, at_once: int) -> None:
        self._console = notes()
        self._quiet = quiet
        self._at_once = at_once
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._bar.__exit__(*problem)

    def __call__(self, outcome: Record | Failure | None, waiting: Sequence[Unit], total: int) -> None:
        """Take note of one outcome."""
        from diptych.benchmark.running import Failure

        # Units start in their order, so that the first of those without a result are the ones that run.
        running = [str(unit) for unit in waiting[: min(self._at_once, _SHOWN)]]
        self._bar.update(
            self._task, completed=total - len(waiting), total=total, description="; ".join(running) or "done"
        )
        if isinstance(outcome, Failure) and not self._quiet:
            # What a method lacks it lacks on every fold; once is enough.
            line = f"{outcome.unit.method if outcome.missing else outcome.unit}: {outcome.message}"
            if line not in self._told:
                self._told.add(line)
                self._console.print(f"{'skipped' if outcome.missing else 'failed'} {line}", markup=False)


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
    listing = table(bold("method"), *numbers("image query", "text query", "average", "± folds", "folds", "seconds"))
    methods = {name: list(group) for name, group in groupby(records, key=lambda record: record.method)}
    for group in sorted(methods.values(), key=lambda group: -fmean([one.average(main) for one in group])):
        ways = [f"{fmean([record.measures[main][way] for record in group]):.4f}" for way in DIRECTIONS]
        averages = [record.average(main) for record in group]
        seconds = fmean([sum(record.seconds.values()) for record in group])
        spread = f"{pstdev(averages):.4f}" if len(group) > 1 else "–"
        cells = [group[0].method_title, *ways, f"{fmean(averages):.4f}", spread, str(len(group)), f"{seconds:.2f}"]
        listing.add_row(*cells)
    console.print(listing)
    chance = fmean([fmean(record.chance[main].values()) for record in records])
    console.print(f"\n{main.replace('AP()', 'MAP')}, mean over folds; chance {chance:.4f}.", markup=False)
