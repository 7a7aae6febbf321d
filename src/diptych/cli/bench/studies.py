"""``diptych bench`` of one paper's experiments: run them, and print ours beside the published numbers."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import check_folder, results, writing
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import (
    available_tasks,
    check_report_files,
    finish_reports,
    write_report_files,
)
from diptych.cli.options import FreshOption, JobsOption, JsonOption, OutputOption, PlotsOption, QuietOption
from diptych.errors import MissingDataError, MissingPackageError, UnknownNameError

if TYPE_CHECKING:
    from diptych.benchmark.neural import NeuralData, NeuralReport
    from diptych.cli.console.progress import Advance

RowsOption = Annotated[
    list[str] | None, typer.Option("--method", "-m", help="Only this row, such as marginal-sm; may be repeated.")
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="A first look: coarser grids and fewer folds; the table says so.")
]


def bench(
    task: Annotated[
        str,
        typer.Argument(
            help="wikipedia, wikipedia-plain, pascal or scenes; pairwise: the tables of Menon et al. 2015, singly "
            "pairwise-wikipedia, pairwise-pascal or pairwise-tvgraz; auto: wikipedia if it is here, else scenes."
        ),
    ] = "auto",
    method: RowsOption = None,
    distances: Annotated[bool, typer.Option(help="Also compare the distance measures.")] = True,
    quick: QuickOption = False,
    jobs: JobsOption = None,
    fresh: FreshOption = False,
    output: OutputOption = None,
    plots: PlotsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a benchmark: choose every parameter on hold-outs of the training part, then measure on the test part once."""
    from diptych.benchmark import find_study, run_study, run_task, study_names
    from diptych.cli.bench.task import draw_bench, print_study
    from diptych.data import cache_folder, find_dataset

    stages = Stages(quiet=quiet)
    if task == "auto":
        task = "wikipedia" if find_dataset("wikipedia").is_available else "scenes"
        stages.note(f"running the benchmark {task!r}")
    study = find_study(task)
    check_report_files(output, plots)
    run = partial(
        run_task,
        methods=method,
        distances=distances,
        n_jobs=jobs or os.cpu_count() or 1,
        folder=None if fresh else cache_folder() / "tuning",
        stage=lambda title: stages.run(title, title),
    )
    report = run_study(study.coarser() if quick else study, run)
    document = report.as_json if task in study_names() else report.reports[0].as_json
    draw = partial(draw_bench, report.reports)
    write_report_files(stages, output=output, document=document, plots=plots, draw=draw, as_json=as_json)
    if not as_json:
        print_study(report, results())


def bench_hashing(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", "-d", help="wikipedia, pascal or flickr8k; may be repeated. Default: those on this machine."
        ),
    ] = None,
    method: RowsOption = None,
    bits: Annotated[
        list[int] | None,
        typer.Option("--bits", "-b", min=1, help="A length of code; may be repeated. Default: 4, 8, 16, 32, 64, 128."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=1, help="Class divisions, each with a seed of its own. Default: 5.")
    ] = None,
    quick: QuickOption = False,
    jobs: JobsOption = None,
    fresh: FreshOption = False,
    output: OutputOption = None,
    plots: PlotsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare hashing methods by the length of their codes, for classes that were learned and classes that were not.

    Methods keep their defaults. MAP and CMC are exact under ties and stand beside chance, storage and search speed.
    """
    from diptych.benchmark.hashing import BITS, HASHING_TASKS, run_bit_budget
    from diptych.cli.bench.hashing import draw_bit_budgets, print_bit_budget
    from diptych.data import cache_folder

    stages = Stages(quiet=quiet)
    tasks = available_tasks(data, "data set of the hashing benchmark", HASHING_TASKS, stages)
    check_report_files(output, plots)
    reports = [
        run_bit_budget(
            task,
            bits=bits or ((8, 16, 32) if quick else BITS),
            methods=method,
            folds=folds or (2 if quick else 5),
            n_jobs=jobs or os.cpu_count() or 1,
            folder=None if fresh else cache_folder() / "hashing",
            stage=lambda title: stages.run(title, title),
            **({"n_searched": 100_000} if quick else {}),
        )
        for task in tasks
    ]
    finish_reports(reports, print_bit_budget, stages, output, plots, draw_bit_budgets, as_json=as_json)


def bench_neural(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            help="wikipedia, pascal, flickr8k, flickr30k, coco, coco-pairs; may be repeated. Default: those found.",
        ),
    ] = None,
    method: RowsOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each method that draws random numbers.")] = 3,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, for methods that have them; else their own.")
    ] = None,
    pixels: Annotated[
        bool, typer.Option("--pixels", help="MNiL from pixels, too: ResNet-50 fine-tuned; needs a graphics card.")
    ] = False,
    fresh: FreshOption = False,
    output: OutputOption = None,
    plots: PlotsOption = None,
    inside: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to inspect with --plots and --save.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Save that method's model, learned with seed 0, in here.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare ranking methods and networks: MAP@50 and MAP on classes, recall on captions, chance and the paper beside.

    Methods keep their defaults. MNiL learns from features and words; from pixels when asked.
    """
    from diptych.benchmark.neural import NEURAL_TASKS, neural_methods, run_neural
    from diptych.cli.bench.neural import print_neural
    from diptych.data import cache_folder

    stages = Stages(quiet=quiet)
    tasks = available_tasks(data, "data set of the comparison of networks", NEURAL_TASKS, stages)
    check_report_files(output, plots)
    # Before any work is done: the method must be measured, and its model written.
    known = method or neural_methods(pixels=True)
    if inside is not None and inside not in known:
        raise UnknownNameError("method to look into", inside, known)
    if save is not None:
        check_folder(save)
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
        if report.results and (plots is not None or save is not None):
            _inspect(inside, report, loaded, plots, save, stages)
        reports.append(report)
    finish_reports(reports, print_neural, stages, output, as_json=as_json)


def _inspect(
    method: str | None, report: NeuralReport, data: NeuralData, plots: Path | None, save: Path | None, stages: Stages
) -> None:
    """Learn a method, the best one if None, once more with seed 0; keep its model and draw its figures, if wanted."""
    from diptych.benchmark.neural import Illustration
    from diptych.cli.bench.neural import draw_neural

    chosen = report.methods[method if method in report.measured else report.best()]
    with stages.run(f"inside {report.task.name}", f"looking into {chosen.name}"):
        found = Illustration.of(report.task, data, chosen, epochs=report.epochs)
    if save is not None:
        place = save / f"{report.task.name}-{chosen.key}"
        with writing(place):
            found.model.save(place)
        stages.note(f"model: {place}")
    if plots is not None:
        stages.note(f"figures: {', '.join(map(str, draw_neural(report, found, plots)))}")


def bench_clicks(
    method: RowsOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of noise that are averaged.")] = 5,
    fresh: FreshOption = False,
    output: OutputOption = None,
    plots: PlotsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare methods that learn from a click log on Flickr8k's human judgements of captions as queries.

    The click log is simulated from the training captions; the judgements are not. Tables have the layout of Dong et
    al. (2018), with what they print beside ours.
    """
    from diptych.benchmark.studies.web_data import flickr8k_web
    from diptych.benchmark.web import chosen_methods, run_web
    from diptych.cli.bench.clicks import draw_click_benchmark, print_click_benchmark
    from diptych.data import cache_folder

    # Before the data are loaded, which takes a while and a data set.
    chosen_methods(method)
    check_report_files(output, plots)
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
    draw = partial(draw_click_benchmark, report)
    write_report_files(stages, output=output, document=report.as_json, plots=plots, draw=draw, as_json=as_json)
    if not as_json:
        print_click_benchmark(report, results())


def bench_costa_pereira(
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="wikipedia, pascal or tvgraz; may be repeated. Default: all of them."),
    ] = None,
    jobs: JobsOption = None,
    output: OutputOption = None,
    plots: PlotsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare distances, correlation methods, and correlation, abstraction and both together (CM, SM, SCM).

    One random fifth of the training part is for choosing; then everything is fitted on the whole training part and the
    test part is asked once. A data set that is not on this machine is named and left out.
    """
    from diptych.benchmark.studies.costa_pereira import COSTA_PEREIRA, run_costa_pereira
    from diptych.benchmark.task import find_by_name
    from diptych.cli.bench.costa_pereira import draw_costa_pereira, print_costa_pereira

    tasks = [find_by_name("data set of this study", name, COSTA_PEREIRA) for name in data or ()] or [*COSTA_PEREIRA]
    check_report_files(output, plots)
    stages = Stages(quiet=quiet)
    reports, lacking = [], []
    for task in tasks:

        def stage(title: str, task: str = task.name) -> AbstractContextManager[Advance]:
            return stages.run(f"{task}: {title}", f"{task}: {title}")

        try:
            reports.append(run_costa_pereira(task, n_jobs=jobs or os.cpu_count() or 1, stage=stage))
        except (MissingDataError, MissingPackageError) as error:
            lacking.append(error)
            stages.note(f"{task.name} is left out: {error}")
    if not reports:
        raise lacking[0]
    finish_reports(reports, print_costa_pereira, stages, output, plots, draw_costa_pereira, as_json=as_json)
