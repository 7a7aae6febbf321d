"""The figures that ``bench neural`` draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych import figures
from diptych.benchmark.neural import Illustration, NeuralReport
from diptych.cli.files import writing
from diptych.data import Pairs
from diptych.figures.retrieval_examples import RetrievalExample, ShownItem
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUERIES = 2
_FEWEST_ON_A_MAP = 20


def draw_neural(report: NeuralReport, inside: Illustration, folder: Path) -> list[Path]:
    """Draw precision by scope, the map of the space and a sheet of answers, as far as the data allow; return the files.

    Without classes there is neither a scope to speak of nor a colour for a map; without raw items there is nothing to
    show of answers.
    """
    made: dict[str, Figure] = {}
    if report.task.has_classes:
        made["precision-scope"] = _scopes(report)
        rows, classes = inside.map_rows()
        if len(rows) >= _FEWEST_ON_A_MAP:
            title = f"{report.task.title}, {inside.method.name}"
            made["map"] = figures.embedding_map(inside.stages(rows), classes, title=title)
    if not inside.pairs.has_text_features:
        made["examples"] = _examples(report, inside)
    files = []
    for name, figure in made.items():
        path = folder / f"neural-{report.task.name}-{name}.png"
        with writing(path):
            figures.save_figure(figure, path)
        files.append(path)
    return files


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
        return RetrievalExample(query, [_text(pairs, int(text)) for text in found], right.tolist())
    query = ShownItem(pairs.texts[row])
    return RetrievalExample(query, [ShownItem(picture=_picture(pairs, int(image))) for image in found], right.tolist())


def _text(pairs: Pairs, row: int) -> ShownItem:
    """Return a text with the picture it belongs to, which nobody searched but which helps to judge it."""
    return ShownItem(pairs.texts[row], _picture(pairs, int(pairs.owners[row])))


def _picture(pairs: Pairs, row: int) -> str | Path | np.ndarray | None:
    if pairs.has_image_features:
        return None
    picture: str | Path | np.ndarray = pairs.images[row]
    return picture
