"""``diptych bench clicks`` and ``costa-pereira``: two papers whose experiments need more than tasks and methods."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import bold, numbers, print_table, results
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import check_report_files, save_figures, write_report_files
from diptych.cli.options import FreshOption, JobsOption, JsonOption, OutputOption, PlotsOption, QuietOption
from diptych.errors import MissingDataError, MissingPackageError, UnknownNameError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from diptych.benchmark.clicks import WebReport
    from diptych.benchmark.papers.costa_pereira import CostaPereiraReport
    from diptych.benchmark.tables import Table
    from diptych.cli.console.progress import Advance


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables one after another, each with its title above and its notes below."""
    console = results()
    for number, shown in enumerate(tables):
        if number:
            console.print()
        console.print(f"{shown.caption}\n", style="bold", markup=False)
        names = [bold(heading) for heading in shown.headings[: shown.n_names]]
        print_table([*names, *numbers(*shown.headings[shown.n_names :])], shown.rows, console)
        if shown.notes:
            console.print("\n" + " ".join(shown.notes), markup=False)


def bench_clicks(
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this row, such as text2image; may be repeated.")
    ] = None,
    data: Annotated[
        str,
        typer.Option("--data", "-d", help="flickr8k; mirflickr or clickture where their files are here."),
    ] = "flickr8k",
    seeds: Annotated[int, typer.Option(min=1, help="Draws of noise that are averaged.")] = 5,
    fresh: FreshOption = False,
    output: OutputOption = None,
    plots: PlotsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare methods that learn from a click log on human judgements.

    On Flickr8k captions are queries, and the log is simulated from the training captions; the judgements are not.
    Tables have the layout of Dong et al. (2018), with what they print beside ours.
    """
    from diptych.benchmark.click_data import WEB_DATA
    from diptych.benchmark.click_methods import chosen_methods
    from diptych.benchmark.clicks import run_web
    from diptych.benchmark.papers.dong import click_tables
    from diptych.data import cache_folder

    # Before the data are loaded, which takes a while and a data set.
    chosen_methods(method)
    check_report_files(output, plots)
    stages = Stages(quiet=quiet)
    if data not in WEB_DATA:
        raise UnknownNameError("data set of this study", data, WEB_DATA)
    with stages.run("data", f"loading the clicks and queries of {data}"):
        web = WEB_DATA[data]()
    report = run_web(
        web,
        methods=method,
        folder=None if fresh else cache_folder() / "web",
        stage=lambda title: stages.run(title, title),
        seeds=seeds,
    )
    draw = partial(draw_clicks, report)
    write_report_files(stages, output=output, document=report.as_json, plots=plots, draw=draw, as_json=as_json)
    if not as_json:
        print_tables(click_tables(report.as_json()).values())


def draw_clicks(report: WebReport, folder: Path) -> list[Path]:
    """Draw curves over noise and neighbours, correlations, and groups of visualness; return the files."""
    from diptych import figures
    from diptych.benchmark.clicks import DRAWN_FOLDS, LEARNED_FUSION, NEIGHBOUR_COUNTS, NEIGHBOUR_MODELS, RANDOM_ROW
    from diptych.figures.group_results import MAX_QUERY_GROUP_METHODS

    if "experts" not in report.data.lists:
        return []
    column, row = report.columns[-1], report.correlated_row
    curves = {each: report.noise_curve(each, column, "experts", DRAWN_FOLDS) for each in (*report.rows, RANDOM_ROW)}
    neighbours = {
        each: [mean for mean, _ in report.neighbour_curve(each, "experts", NEIGHBOUR_COUNTS)]
        for each in NEIGHBOUR_MODELS
    }
    neighbours[RANDOM_ROW] = [report.mean(RANDOM_ROW, column, "experts")] * len(NEIGHBOUR_COUNTS)
    followed = [report.correlations(row, column, "experts", fold) for fold in DRAWN_FOLDS]
    correlations = {kind: [found[kind].coefficient for found in followed] for kind in followed[0]}
    shown = [each for each in report.rows if each != LEARNED_FUSION and each in report.fused_rows]
    bars = {each: report.group_means(each, column, "experts") for each in shown[:MAX_QUERY_GROUP_METHODS]}
    line = figures.noise_curves
    drawn = {
        "noise": line(DRAWN_FOLDS, curves, score="NDCG@25", title="Expert grades, with irrelevant pictures added"),
        "neighbours": line(NEIGHBOUR_COUNTS, neighbours, score="NDCG@25", title="Expert grades", against="neighbours"),
        "correlations": line(
            DRAWN_FOLDS, correlations, score="Spearman's correlation", title=f"What predicts the answers of {row}"
        ),
        "visualness": figures.query_group_bars(
            ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"),
            bars,
            report.group_means(RANDOM_ROW, column, "experts"),
            counts=report.group_sizes("experts"),
            title="Experts, one-fold noise",
        ),
    }
    return save_figures({f"clicks-{name}.png": figure for name, figure in drawn.items()}, folder)


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
    from diptych.benchmark.papers.costa_pereira import COSTA_PEREIRA, costa_pereira_tables, run_costa_pereira
    from diptych.benchmark.task import find_by_name

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

    def draw(folder: Path) -> list[Path]:
        return save_figures({name: figure for report in reports for name, figure in _figures(report)}, folder)

    documents = [report.as_json() for report in reports]
    write_report_files(stages, output=output, document=lambda: documents, plots=plots, draw=draw, as_json=as_json)
    if not as_json:
        print_tables(shown for document in documents for shown in costa_pereira_tables(document).values())


def _figures(report: CostaPereiraReport) -> Iterator[tuple[str, Figure]]:
    """Yield what the paper's figures on the test part show: curves, categories and confusion of every method."""
    from diptych import figures

    title, stem = report.title.partition(",")[0], f"costa-pereira-{report.task}"
    curves = {method: detail.precision for method, detail in report.details.items()}
    yield f"{stem}-precision-recall.png", figures.method_precision_recall(curves, report.chance.precision, title=title)
    for method, detail in report.details.items():
        name = f"{title}, {method}"
        bars = figures.category_bars(detail.categories, report.chance.categories, title=name)
        yield f"{stem}-categories-{method.lower()}.png", bars
        yield f"{stem}-confusion-{method.lower()}.png", figures.confusion(detail.confusion, title=name)
