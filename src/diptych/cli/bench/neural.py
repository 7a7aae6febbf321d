"""The tables and figures of `diptych bench neural`: methods beside the values of Zhang et al. (2017)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from diptych import figures
from diptych.arrays import AnyArray
from diptych.benchmark.neural import LABELLED, Illustration, NeuralMethod, NeuralReport
from diptych.cli.console.output import bold, numbers, or_dash, table
from diptych.cli.console.report_files import save_figures
from diptych.data import Pairs
from diptych.directions import DIRECTION_NAMES, DIRECTIONS, Direction
from diptych.figures.retrieval_examples import RetrievalExample, ShownItem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUERIES = 2
_FEWEST_ON_A_MAP = 20
_NOTHING = "–"


def draw_neural(report: NeuralReport, inside: Illustration, folder: Path) -> list[Path]:
    """Draw precision by scope, the map of the space and answers, as far as the data allow; return the files."""
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
    curves: dict[str, dict[Direction, list[float]]] = {}
    for key in report.measured:
        results = report.select(key)
        curves[report.methods[key].name] = {
            way: np.mean([result.precision[way] for result in results], axis=0).tolist() for way in DIRECTIONS
        }
    first = report.results[0]
    return figures.precision_scope(first.scopes, curves, first.relevant_share, title=report.task.title)


def _examples(report: NeuralReport, inside: Illustration) -> Figure:
    rng = np.random.default_rng(0)
    sides: dict[Direction, int] = {"image_query": inside.pairs.n_images, "text_query": inside.pairs.n_texts}
    drawn = [
        _example(inside, way, int(row)) for way, n_items in sides.items() for row in rng.permutation(n_items)[:_QUERIES]
    ]
    # A sheet is narrower than the title of a task.
    data = report.task.title.partition(",")[0]
    return figures.retrieval_examples(drawn, title=f"{data}, {inside.method.name}: queries drawn at random")


def _example(inside: Illustration, way: Direction, row: int) -> RetrievalExample:
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


_DENOMINATORS = (
    "MAP@50 (retrieved) divides by the relevant items among the first 50, as the authors' evaluator does; MAP@50 "
    "(total) by all relevant items. Over the full ranking, MAP, both are the same. Ties count by expectation."
)


def print_neural(report: NeuralReport, console: Console) -> None:
    """Print a table for each direction, ours beside the paper's, and what was left out."""
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
