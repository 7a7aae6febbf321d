"""``diptych bench neural``: ranking methods and networks beside the values of Zhang et al. (2017)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from diptych.cli.console.output import bold, check_folder, numbers, or_dash, table, writing
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import available_tasks, check_report_files, finish_reports, save_figures
from diptych.cli.options import FreshOption, JsonOption, OutputOption, QuietOption
from diptych.directions import DIRECTION_NAMES, DIRECTIONS, Direction
from diptych.errors import UnknownNameError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from diptych.arrays import AnyArray
    from diptych.benchmark.neural import Illustration, NeuralData, NeuralMethod, NeuralReport
    from diptych.data import Pairs
    from diptych.figures.retrieval_examples import RetrievalExample

_QUERIES = 2
_FEWEST_ON_A_MAP = 20
_NOTHING = "–"


def bench_neural(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            help="wikipedia, pascal, flickr8k, flickr30k, coco, coco-pairs; may be repeated. Default: those found.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this method, such as ldsp; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each method that draws random numbers.")] = 3,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, for methods that have them; else their own.")
    ] = None,
    pixels: Annotated[
        bool, typer.Option("--pixels", help="MNiL from pixels, too: ResNet-50 fine-tuned; needs a graphics card.")
    ] = False,
    fresh: FreshOption = False,
    output: OutputOption = None,
    plots: Annotated[
        Path | None, typer.Option(help="Draw precision by scope, maps of the space and answers into this folder.")
    ] = None,
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
    from diptych.benchmark.neural import find_neural_task, neural_methods, neural_task_names, run_neural
    from diptych.data import cache_folder

    stages = Stages(quiet=quiet)
    tasks = available_tasks(data, find_neural_task, neural_task_names(), stages)
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


def draw_neural(report: NeuralReport, inside: Illustration, folder: Path) -> list[Path]:
    """Draw precision by scope, the map of the space and answers, as far as the data allow; return the files."""
    from diptych import figures

    made: dict[str, Figure] = {}
    # Without classes there is neither a scope to speak of nor a colour for a map.
    if report.task.has_classes:
        made["precision-scope"] = _scopes(report)
        rows, classes = inside.map_rows()
        if len(rows) >= _FEWEST_ON_A_MAP:
            title = f"{report.task.title}, {inside.method.name}"
            made["map"] = figures.embedding_map(inside.stages(rows), classes, title=title)
    if not inside.pairs.has_text_features:
        made["examples"] = _examples(report, inside)
    return save_figures({f"neural-{report.task.name}-{name}.png": figure for name, figure in made.items()}, folder)


def _scopes(report: NeuralReport) -> Figure:
    import numpy as np

    from diptych import figures

    curves: dict[str, dict[Direction, list[float]]] = {}
    for key in report.measured:
        results = report.select(key)
        curves[report.methods[key].name] = {
            way: np.mean([result.precision[way] for result in results], axis=0).tolist() for way in DIRECTIONS
        }
    first = report.results[0]
    return figures.precision_scope(first.scopes, curves, first.relevant_share, title=report.task.title)


def _examples(report: NeuralReport, inside: Illustration) -> Figure:
    import numpy as np

    from diptych import figures

    rng = np.random.default_rng(0)
    sides: dict[Direction, int] = {"image_query": inside.pairs.n_images, "text_query": inside.pairs.n_texts}
    drawn = [
        _example(inside, way, int(row)) for way, n_items in sides.items() for row in rng.permutation(n_items)[:_QUERIES]
    ]
    # A sheet is narrower than the title of a task.
    data = report.task.title.partition(",")[0]
    return figures.retrieval_examples(drawn, title=f"{data}, {inside.method.name}: queries drawn at random")


def _example(inside: Illustration, way: Direction, row: int) -> RetrievalExample:
    from diptych.figures.retrieval_examples import RetrievalExample, ShownItem

    found, right = inside.answers(way, row)
    pairs = inside.pairs
    if way == "image_query":
        query = ShownItem(picture=_picture(pairs, row))
        # Beside each text the picture it belongs to, which nobody searched but which helps to judge it.
        answers = [ShownItem(pairs.texts[text], _picture(pairs, int(pairs.owners[text]))) for text in map(int, found)]
    else:
        query = ShownItem(pairs.texts[row])
        answers = [ShownItem(picture=_picture(pairs, int(image))) for image in found]
    return RetrievalExample(query, answers, right.tolist())


def _picture(pairs: Pairs, row: int) -> str | Path | AnyArray | None:
    if pairs.has_image_features:
        return None
    picture: str | Path | AnyArray = pairs.images[row]
    return picture


def _inspect(
    method: str | None, report: NeuralReport, data: NeuralData, plots: Path | None, save: Path | None, stages: Stages
) -> None:
    """Learn a method, the best one if None, once more with seed 0; keep its model and draw its figures, if wanted."""
    from diptych.benchmark.neural import Illustration

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


_DENOMINATORS = (
    "MAP@50 (retrieved) divides by the relevant items among the first 50, as the authors' evaluator does; MAP@50 "
    "(total) by all relevant items. Over the full ranking, MAP, both are the same. Ties count by expectation."
)


def print_neural(report: NeuralReport, console: Console) -> None:
    """Print a table for each direction, ours beside the paper's, and what was left out."""
    from diptych.benchmark.studies.zhang import LABELLED

    seeds = max((len(report.select(key)) for key in report.measured), default=0)
    spread = f"; mean ± standard deviation of {seeds} seeds" if seeds > 1 else "; one seed"
    epochs = "" if report.epochs is None else f"; {report.epochs} epochs where a method has them"
    console.print(f"{report.task.title}{spread if seeds else ''}{epochs}", style="bold")
    for way in DIRECTIONS:
        console.print(f"\n{DIRECTION_NAMES[way].capitalize()}\n", style="bold")
        _print_direction(report, way, console)
    console.print()
    where = "the same data, other features" if report.task.same_data else "other data: only the order compares"
    table_name = report.task.published_table.lower()
    console.print(f"paper: Zhang et al. (2017), {table_name}, {report.task.published_data}, {where}. – not measured.")
    if report.task.measures == LABELLED:
        console.print(_DENOMINATORS)
    for note in report.task.notes:
        console.print(note)
    for key, reason in report.left_out.items():
        name = report.methods[key].name
        told = f"left out: {name}, which {reason}" if reason.startswith(("learns", "reads")) else f"{name}: {reason}"
        console.print(told)


def _print_direction(report: NeuralReport, way: Direction, console: Console) -> None:
    labels = [measure.label for measure in report.task.measures]
    printed = [label for label in labels if any(report.published(m, label, way) is not None for m in report.shown)]
    headings = [label.replace(" ", "\n") for label in labels]
    headings += [f"paper\n{label.partition(' ')[0]}" for label in printed]
    listing = table(bold("method"), *numbers(*headings, "fit, s"))
    in_table = True
    for method in report.shown:
        if in_table and not method.published:
            listing.add_section()
            in_table = False
        listing.add_row(method.name, *_cells(report, method, labels, printed, way))
    if report.results:
        chances = [f"{report.chance(label, way):.4f}" for label in labels]
        listing.add_section()
        listing.add_row("chance", *chances, *([""] * (len(printed) + 1)))
    console.print(listing)


def _cells(
    report: NeuralReport, method: NeuralMethod, labels: list[str], printed: list[str], way: Direction
) -> list[str]:
    results = report.select(method.key)
    ours = [_score(report.score(method.key, label, way), len(results)) for label in labels]
    theirs = [or_dash(report.published(method, label, way), ".4f") for label in printed]
    seconds = f"{sum(result.fit_seconds for result in results) / len(results):.1f}" if results else _NOTHING
    return [*ours, *theirs, seconds]


def _score(score: tuple[float, float] | None, seeds: int) -> str:
    if score is None:
        return _NOTHING
    return f"{score[0]:.4f} ± {score[1]:.4f}" if seeds > 1 else f"{score[0]:.4f}"
