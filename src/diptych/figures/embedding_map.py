"""Pictures and texts of a space on a map of two dimensions, before and after learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_matrix, row_blocks, unit_rows
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.figures.style import SERIES_COLOURS, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MapMethod = Literal["tsne", "umap"]
_METHODS: dict[MapMethod, str] = {"tsne": "t-SNE", "umap": "UMAP"}
# Okabe and Ito's colours, then three darker ones; more classes than that share colours, which the legend would hide.
_COLOURS = (*SERIES_COLOURS, "#8C6D1F", "#5A3E85", "#7A7A7A")
MAX_CLASSES = len(_COLOURS)
_ROWS_AT_ONCE = 1024
_MIN_PERPLEXITY = 5.0


class Neighbourhood(NamedTuple):
    """Shares of the same class and of the other side among the nearest neighbours; well mixed sides have about half."""

    same_class: float
    other_side: float


def neighbourhood(images: ArrayLike, texts: ArrayLike, labels: ArrayLike, k: int = 10) -> Neighbourhood:
    """Measure the k nearest neighbours, by cosine, of pictures and texts thrown together.

    Row i of ``images`` and of ``texts`` has label i. The space itself is measured, never a map of it: distances on maps
    mean little (van der Maaten and Hinton, 2008). Use it beside such a map.
    """
    points, classes, sides = _together(images, texts, labels)
    if not 1 <= k < len(points):
        raise InvalidInputError(f"k must lie in 1..{len(points) - 1}, the number of other items, got {k}")
    same = other = 0.0
    for block in row_blocks(len(points), _ROWS_AT_ONCE):
        cosines = points[block] @ points.T
        # An item is not its own neighbour.
        cosines[np.arange(len(cosines)), np.arange(block.start, block.stop)] = -np.inf
        same += _expected(cosines, k, classes[block][:, None] == classes)
        other += _expected(cosines, k, sides[block][:, None] != sides)
    return Neighbourhood(same / (k * len(points)), other / (k * len(points)))


def embedding_map(
    stages: Mapping[str, tuple[ArrayLike, ArrayLike]],
    labels: ArrayLike,
    *,
    method: MapMethod = "tsne",
    k: int = 10,
    seed: int = 0,
    title: str = "",
) -> Figure:
    """Draw a panel for each stage, such as before and after learning: circles are pictures, triangles are texts.

    ``stages`` are pairs of points (pictures, texts) of one space; row i of both has label i, which its colour shows.
    Below each map stands what `neighbourhood` measures in the space itself. The map is t-SNE's (van der Maaten and
    Hinton, JMLR 2008), or UMAP's (McInnes et al., 2018; ``pip install umap-learn``), by cosine. Zhang et al. (ACM
    Multimedia 2017, figure 5) compare methods by such maps. Use it to see whether classes part and the two sides mix.

    >>> import numpy as np
    >>> from diptych.figures import embedding_map
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 15)
    >>> mixed = rng.normal(size=(30, 4))
    >>> apart = mixed + 9 * (labels == "boat")[:, None]
    >>> figure = embedding_map({"before": (mixed, rng.normal(size=(30, 4))), "after": (apart, apart)}, labels)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['before', 'after']
    """
    if method not in _METHODS:
        raise InvalidInputError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    if not stages:
        raise InvalidInputError("there is nothing to draw; give the points of at least one stage")
    names = [str(name) for name in np.unique(np.asarray(labels))]
    if len(names) > MAX_CLASSES:
        raise InvalidInputError(f"draw at most {MAX_CLASSES} classes, got {len(names)}; more cannot be told apart")
    with house_style():
        figure = new_figure(5.2 * len(stages) + 1.6, 5.4)
        panels = np.atleast_1d(figure.subplots(1, len(stages)))
        for axes, (stage, (images, texts)) in zip(panels, stages.items(), strict=True):
            points, classes, sides = _together(images, texts, labels)
            _draw_map(axes, _flat(points, method, seed), classes, sides, names)
            found = neighbourhood(images, texts, labels, k)
            axes.set_title(stage)
            axes.set_xlabel(
                f"{k} nearest, pictures and texts together:\n"
                f"same class {found.same_class:.2f} (chance {_chance(classes):.2f}), other side {found.other_side:.2f}"
            )
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
        figure.suptitle(f"{title}: {_METHODS[method]}" if title else _METHODS[method], x=0.01, ha="left", weight="bold")
    return figure


def _together(images: ArrayLike, texts: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, AnyArray, AnyArray]:
    """Return points of unit length, and the class and side of each."""
    image_rows, text_rows = as_matrix(images, name="images"), as_matrix(texts, name="texts")
    classes = np.asarray(labels)
    if image_rows.shape != text_rows.shape or classes.shape != (len(image_rows),):
        raise InvalidInputError(
            f"images, texts and labels must be aligned points of one space, got {image_rows.shape}, {text_rows.shape} "
            f"and {classes.shape}"
        )
    points = unit_rows(np.concatenate([image_rows, text_rows]).astype(np.float64))
    return points, np.concatenate([classes, classes]), np.repeat([0, 1], len(classes))


def _expected(cosines: FloatArray, k: int, counted: AnyArray) -> float:
    """Return how many of the k nearest are counted; equal cosines at the edge share the places that are left."""
    edge = -np.partition(-cosines, k - 1, axis=1)[:, k - 1 : k]
    inside, tied = cosines > edge, cosines == edge
    places = k - inside.sum(axis=1)
    shares = (tied & counted).sum(axis=1) / tied.sum(axis=1)
    return float(((inside & counted).sum(axis=1) + places * shares).sum())


def _chance(classes: AnyArray) -> float:
    counts = np.unique(classes, return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (len(classes) * (len(classes) - 1)))


def _flat(points: FloatArray, method: MapMethod, seed: int) -> FloatArray:
    perplexity = min(30.0, max(_MIN_PERPLEXITY, len(points) / 10))
    if method == "tsne":
        from sklearn.manifold import TSNE

        # Between rows of unit length Euclidean distance orders as the cosine does.
        return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(points))
    if find_spec("umap") is None:
        raise MissingPackageError("a UMAP map", "umap-learn")
    from importlib import import_module

    made = import_module("umap").UMAP(metric="cosine", random_state=seed).fit_transform(points)
    return np.asarray(made)


def _draw_map(axes: Axes, places: FloatArray, classes: AnyArray, sides: AnyArray, names: Sequence[str]) -> None:
    written = classes.astype(str)
    for side, marker in ((0, "o"), (1, "^")):
        for name, colour in zip(names, _COLOURS, strict=False):
            rows = (sides == side) & (written == name)
            look: dict[str, Any] = {"color": colour} if side == 0 else {"facecolors": "none", "edgecolors": colour}
            across, up = places[rows].T
            label = f"{name}, {('picture', 'text')[side]}"
            axes.scatter(across, up, s=16, marker=marker, linewidths=0.9, label=label, **look)
    axes.set_xticks([])
    axes.set_yticks([])
