"""``diptych bench run``: many methods on many tasks, one result file for each unit of work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


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
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Address of a Dask scheduler, such as tcp://host:8786.")
    ] = None,
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
    seed: Annotated[int, typer.Option("--seed", help="Of folds, draws and hold-outs.")] = 0,
    list_only: Annotated[bool, typer.Option("--list", help="Show what would run, and run nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Run methods on tasks, each tuned on training data alone, and keep one result file for each method and fold.

    What is done is not repeated: stop a run when you like and start it again. A method that fails is named in one line
    and the others go on; the exit status is then 1.
    """
    from diptych.benchmark.results import ResultFolder
    from diptych.benchmark.running import Catalogue, ClusterEngine, LocalEngine, OwnData, Plugin, run_benchmark
    from diptych.cli.bench_run_progress import BenchProgress
    from diptych.cli.bench_run_report import print_run, print_units
    from diptych.cli.files import check_folder
    from diptych.cli.terminal import results as results_console

    catalogue = Catalogue(
        plugins=tuple(Plugin.read(path) for path in plugin or ()),
        data=None if data is None else OwnData(str(data.resolve()), seed),
        folds=folds,
        seed=seed,
    )
    units = catalogue.units(task or ["*"], method or ["*"])
    if list_only:
        print_units(units, results_console())
        return
    check_folder(results)
    folder = ResultFolder(results)
    engine = LocalEngine(jobs or os.cpu_count() or 1) if cluster is None else ClusterEngine(cluster)
    with BenchProgress(quiet=quiet, at_once=jobs or os.cpu_count() or 1) as progress:
        report = run_benchmark(catalogue, units, folder, engine=engine, progress=progress)
    print_run(report, units, folder, results_console())
    if report.failed or (report.missing and not report.done and not report.kept):
        raise typer.Exit(1)
