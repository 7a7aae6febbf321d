"""``diptych bench align``: two frozen towers and few captions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.bench.run import run_facts, unit_progress
from diptych.cli.bench.studies import print_tables
from diptych.cli.console.output import check_folder, notes, print_json
from diptych.cli.console.progress import Stages
from diptych.cli.options import JobsOption, JsonOption, QuietOption

_QUICK_BUDGETS = (20, 100)


def bench_align(
    towers: Annotated[
        list[str] | None,
        typer.Option("--towers", help="Tower pairs, such as lite2-minilm; may be repeated. Default: all of them."),
    ] = None,
    pairs: Annotated[
        list[int] | None, typer.Option("--pairs", help="Numbers of captions, such as 20; may be repeated.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Methods by name or pattern; may be repeated.")
    ] = None,
    data: Annotated[str, typer.Option("--data", "-d", help="flickr8k, or coco_pairs.")] = "flickr8k",
    quick: Annotated[bool, typer.Option("--quick", help="20 and 100 captions, one tower pair, two draws.")] = False,
    results: Annotated[
        Path, typer.Option("--results", "-r", help="Where the results go; what is there is not run again.")
    ] = Path("results"),
    jobs: JobsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare methods that align two frozen towers with few captions, or with none.

    Each draw gives so many photographs of the training part with one caption each, and perhaps others that have lost
    their partner. Settings and methods are chosen on the development part; the test part is asked once. Towers whose
    weights are not on this machine are named and left out.
    """
    from diptych.benchmark import Catalogue, ResultFolder, run_benchmark
    from diptych.benchmark.papers.alignment import ALIGNMENT, MAIN, TOWERS
    from diptych.benchmark.reporting.few_captions import curve, what_to_use
    from diptych.benchmark.reporting.reproduction import StoredResults
    from diptych.errors import UnknownNameError

    chosen = towers or ([MAIN] if quick else [*TOWERS])
    for name in chosen:
        if name not in TOWERS:
            raise UnknownNameError("tower pair", name, TOWERS)
    budgets = set(pairs or (_QUICK_BUDGETS if quick else ()))
    tasks = [
        task.name
        for task in ALIGNMENT
        if task.dataset == data and task.towers in chosen and (not budgets or task.pairs in budgets)
    ]
    if not tasks:
        known = sorted({(task.dataset, task.pairs) for task in ALIGNMENT if task.towers in chosen})
        raise UnknownNameError("budget", f"{data} {sorted(budgets)}", [f"{name} {count}" for name, count in known])
    catalogue = Catalogue(folds=2 if quick else None)
    units = catalogue.units(tasks, method or ["*"])
    check_folder(results)
    folder = ResultFolder(results)
    with unit_progress(Stages(quiet=quiet)) as progress:
        report = run_benchmark(catalogue, units, folder, jobs=jobs or os.cpu_count() or 1, progress=progress)
    if as_json:
        print_json(run_facts(report, units, folder))
    else:
        stored = StoredResults(results)
        shown = [name for name in chosen if any(stored.has_task(task) for task in tasks if f"-{name}-" in task)]
        if data == "flickr8k" and not method:
            print_tables(what_to_use(stored, name) for name in shown)
        print_tables(curve(stored, data, name, "R@10") for name in shown)
        notes().print(f"{len(report.done)} run, {report.kept} kept, {len(report.missing)} skipped; results: {results}")
    if report.failed or (report.missing and not report.done and not report.kept):
        raise typer.Exit(1)
