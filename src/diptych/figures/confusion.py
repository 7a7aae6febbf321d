"""Confusion matrices as heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.figures.style import INK, NAMES, house_style, new_figure
from diptych.metrics import ConfusionMatrix
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Numbers are written into the cells as long as they can be read.
_MOST_CLASSES_WITH_NUMBERS = 25
_DARK = 55


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
            axes.set_title(NAMES[way], fontsize=11)
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
        _write_numbers(axes, rates)
    return image


def _write_numbers(axes: Axes, rates: FloatArray) -> None:
    for row, column in np.argwhere(rates >= 0.5).tolist():
        rate = rates[row, column]
        colour = "white" if rate > _DARK else INK
        axes.text(column, row, f"{rate:.0f}", ha="center", va="center", fontsize=8, color=colour)
