"""Results in groups: by class, with confusion matrices, by groups of queries, and as noise among candidates grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.figures.style import (
    CHANCE,
    COLOURS,
    INK,
    check_number_of_methods,
    house_style,
    light_grid,
    new_figure,
    one_panel,
    series_style,
)
from diptych.metrics import ConfusionMatrix
from diptych.space import DIRECTION_NAMES, DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

CategoryMeans = Mapping[Direction, Mapping[str, float | None]]
_BAR_WIDTH = 0.38
# Numbers are written into the cells as long as they can be read.
_MAX_CLASSES_WITH_NUMBERS = 25
_DARK = 55
# Okabe and Ito's colours, as light and dark in turn, so that neighbours are told apart in grey too.
_GROUP_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7")
_GROUP_WIDTH = 0.8
MAX_QUERY_GROUP_METHODS = len(_GROUP_COLOURS)


def category_bars(means: CategoryMeans, chance: CategoryMeans | None = None, *, title: str = "") -> Figure:
    """Draw MAP per category for image and text queries, as figure 11 of Costa Pereira et al. (TPAMI 2014) does.

    ``means`` holds for each direction the mean of each category, as `category_means` returns it; a category without a
    value has no bar. ``chance`` has the same form and is drawn as a dashed line on each bar: large categories are easy
    by chance alone. Use it to see whether a good mean hides bad categories.

    >>> from diptych.figures import category_bars
    >>> figure = category_bars({"image_query": {"art": 0.2, "music": 0.4}, "text_query": {"art": 0.3, "music": 0.5}})
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['art', 'music']
    """
    names = list(means["image_query"])
    if not names or any(list(means[way]) != names for way in DIRECTIONS):
        raise InvalidInputError("both directions need the same categories in the same order, and at least one")
    with one_panel(max(4.8, 1.6 + 0.75 * len(names)), 4.4) as (figure, axes):
        middle = np.arange(len(names), dtype=np.float64)
        entries: list[Any] = []
        for way, shift in zip(DIRECTIONS, (-_BAR_WIDTH / 2, _BAR_WIDTH / 2), strict=True):
            bars = axes.bar(
                middle + shift, _heights(means[way]), _BAR_WIDTH * 0.94, color=COLOURS[way], label=DIRECTION_NAMES[way]
            )
            entries.append(bars)
            if chance is not None:
                left, right = middle + shift - _BAR_WIDTH / 2, middle + shift + _BAR_WIDTH / 2
                axes.hlines(_heights(chance[way]), left, right, color=INK, linestyle=(0, (2.5, 1)), linewidth=1.6)
        if chance is not None:
            entries += axes.plot([], [], color=INK, linestyle=(0, (2.5, 1)), linewidth=1.6, label="chance")
        axes.set_xticks(middle, names, rotation=35, ha="right", rotation_mode="anchor")
        axes.set(ylabel="MAP", title=title, xlim=(-0.6, len(names) - 0.4))
        light_grid(axes, "y")
        axes.legend(handles=entries, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, columnspacing=1.4)
    return figure


def _heights(means: Mapping[str, float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in means.values()])


def confusion(matrices: Mapping[Direction, ConfusionMatrix], *, title: str = "") -> Figure:
    """Draw one heat map for each direction: rows are true classes, columns the classes that the rankings speak for.

    Cells hold the percentage of the row, as in figure 10 of Costa Pereira et al. (TPAMI 2014); a good space has a
    dark diagonal. Use it to see which classes a space takes for each other.

    >>> from diptych.figures import confusion
    >>> from diptych.metrics import ConfusionMatrix
    >>> matrix = ConfusionMatrix.from_scores([[0.9, 0.1], [0.2, 0.8]], ["cat", "dog"], ["cat", "dog"])
    >>> confusion({"image_query": matrix}).axes[0].get_title("left")
    'image query'
    """
    ways = [way for way in DIRECTIONS if way in matrices]
    if not ways:
        raise InvalidInputError("there is no confusion matrix to draw; pass one for image_query or text_query")
    with house_style():
        side = 1.9 + 0.36 * max(len(matrices[way].classes) for way in ways)
        figure = new_figure((side + 0.2) * len(ways) + 0.9, side + 0.6, layout="compressed")
        panels = figure.subplots(1, len(ways), squeeze=False)[0]
        for axes, way in zip(panels, ways, strict=True):
            image = _heat_map(axes, matrices[way])
            axes.set_title(DIRECTION_NAMES[way], fontsize=11)
        bar = figure.colorbar(image, ax=list(panels), shrink=0.8, pad=0.02, label="share of the true class, %")
        bar.outline.set_visible(False)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def _heat_map(axes: Axes, matrix: ConfusionMatrix) -> AxesImage:
    rates, names = 100 * matrix.rates, [str(name) for name in matrix.classes]
    image = axes.imshow(rates, cmap="Blues", vmin=0, vmax=100)
    positions = range(len(names))
    axes.set_xticks(positions, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(positions, names)
    axes.set(xlabel="class the ranking speaks for", ylabel="true class")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(names) <= _MAX_CLASSES_WITH_NUMBERS:
        for row, column in np.argwhere(rates >= 0.5).tolist():
            colour = "white" if rates[row, column] > _DARK else INK
            axes.text(column, row, f"{rates[row, column]:.0f}", ha="center", va="center", fontsize=8, color=colour)
    return image


def query_group_bars(
    groups: Sequence[str],
    scores: Mapping[str, Sequence[float]],
    chance: Sequence[float] | None = None,
    *,
    counts: Sequence[int] | None = None,
    label: str = "visualness",
    score: str = "NDCG@25",
    title: str = "",
) -> Figure:
    """Draw the mean score of each group of queries, a bar for each method; an empty group (NaN) has no bar.

    Figure 9 of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018, has this
    form, with queries grouped by visualness. ``chance`` is the score of a random order, the first, grey bar: groups
    whose pictures are mostly relevant are easy for anyone. ``counts``, the numbers of queries, stand below the groups.
    :class:`diptych.protocols.QueryGroups` forms the groups.

    >>> from diptych.figures import query_group_bars
    >>> figure = query_group_bars(["0–0.5", "0.5–1"], {"DeViSE": [0.5, 0.7]}, [0.4, 0.6], counts=[120, 80])
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['0–0.5\\n120', '0.5–1\\n80']
    """
    check_number_of_methods(len(scores), MAX_QUERY_GROUP_METHODS)
    bars = [] if chance is None else [("random", chance, CHANCE)]
    bars += [(name, values, colour) for (name, values), colour in zip(scores.items(), _GROUP_COLOURS, strict=False)]
    if not groups or any(len(values) != len(groups) for _, values, _ in bars):
        raise InvalidInputError("each group needs one score of every method, and there must be at least one group")
    middle, width = np.arange(len(groups), dtype=np.float64), _GROUP_WIDTH / len(bars)
    with one_panel(max(6.4, 1.2 + 0.24 * len(groups) * (len(bars) + 1))) as (figure, axes):
        for number, (name, values, colour) in enumerate(bars):
            shift = (number - (len(bars) - 1) / 2) * width
            axes.bar(middle + shift, np.asarray(values, dtype=np.float64), width * 0.92, color=colour, label=name)
        names = groups if counts is None else [f"{group}\n{n:,}" for group, n in zip(groups, counts, strict=True)]
        axes.set_xticks(middle, list(names))
        axes.set(xlabel=label if counts is None else f"{label}, and number of queries", ylabel=score, title=title)
        axes.set_ylim(bottom=0)
        light_grid(axes, "y")
        if len(bars) > 1:
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=min(4, len(bars)), columnspacing=1.4)
    return figure


def visual_shares(
    thresholds: Sequence[float],
    shares: Sequence[float],
    weighted: Sequence[float] | None = None,
    *,
    title: str = "",
    weight: str = "clicks",
) -> Figure:
    """Draw which share of a query log is more visual than each threshold, dotted; weighted by clicks, solid.

    Figure 2 of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018, has this
    form. Where the solid line is above the dotted one, visual queries get more clicks than others: they are answered
    better. :func:`diptych.encoders.visual_share` counts the shares.

    >>> from diptych.figures import visual_shares
    >>> figure = visual_shares([0.0, 0.5], [0.8, 0.2], [0.9, 0.4])
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['queries', 'queries weighted by clicks']
    """
    curves = [shares] if weighted is None else [shares, weighted]
    if not thresholds or any(len(curve) != len(thresholds) for curve in curves):
        raise InvalidInputError("each threshold needs a share, and there must be at least one threshold")
    with one_panel() as (figure, axes):
        percent = 100 * np.asarray(shares)
        axes.plot(thresholds, percent, color=COLOURS["image_query"], linestyle=":", marker="o", label="queries")
        if weighted is not None:
            label = f"queries weighted by {weight}"
            axes.plot(thresholds, 100 * np.asarray(weighted), color=COLOURS["text_query"], marker="s", label=label)
        axes.set(ylim=(0, 102), xlabel="threshold of visualness", ylabel="% of queries above it", title=title)
        light_grid(axes)
        axes.legend(loc="best")
    return figure


def noise_curves(
    folds: Sequence[int],
    scores: Mapping[str, Sequence[float]],
    *,
    score: str = "NDCG@25",
    title: str = "",
    against: str = "irrelevant pictures added, times those judged",
) -> Figure:
    """Draw the score of each method against the fold of noise, the best at the last fold first in the legend.

    Figure 7 of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018, has this
    form: at fold h, h times as many irrelevant pictures stand among those that were judged for a query
    (:func:`diptych.protocols.with_noise`). A line called ``random`` is drawn as chance. Use it to see which methods
    hold without a filter on the candidates. ``against`` names what is varied instead.

    >>> from diptych.figures import noise_curves
    >>> figure = noise_curves([0, 1], {"PSI": [0.5, 0.4], "random": [0.4, 0.2]})
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['PSI', 'random']
    """
    if not scores or not folds or any(len(values) != len(folds) for values in scores.values()):
        raise InvalidInputError("each method needs one score at every fold, and there must be at least one of both")
    ranked = sorted(scores, key=lambda name: -scores[name][-1])
    with one_panel(8.4, 4.8) as (figure, axes):
        for number, name in enumerate(ranked):
            if name == "random":
                axes.plot(folds, scores[name], color=CHANCE, linestyle=(0, (1, 2)), label=name)
                continue
            axes.plot(folds, scores[name], **series_style(number), markersize=4.5, linewidth=1.4, label=name)
        axes.set_xticks(list(folds))
        axes.set(xlabel=against, ylabel=score, title=title)
        # Small differences shall look small.
        axes.set_ylim(bottom=min(0.0, *(min(values) for values in scores.values())))
        light_grid(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure
