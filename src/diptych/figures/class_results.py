"""Results by class: bars of mean average precision, and confusion matrices as heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.figures.style import COLOURS, INK, house_style, light_grid, new_figure, one_panel
from diptych.metrics import ConfusionMatrix
from diptych.space import DIRECTION_NAMES, DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


CategoryMeans = Mapping[Direction, Mapping[str, float | None]]
_BAR_WIDTH = 0.38
# Numbers are written into the cells as long as they can be read.
_MOST_CLASSES_WITH_NUMBERS = 25
_DARK = 55


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
    if len(names) <= _MOST_CLASSES_WITH_NUMBERS:
        for row, column in np.argwhere(rates >= 0.5).tolist():
            colour = "white" if rates[row, column] > _DARK else INK
            axes.text(column, row, f"{rates[row, column]:.0f}", ha="center", va="center", fontsize=8, color=colour)
    return image
