"""Mean average precision of every category, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.figures.style import COLOURS, INK, NAMES, house_style, light_grid, new_figure
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Means = Mapping[Direction, Mapping[str, float | None]]

_BAR = 0.38


def category_bars(means: Means, chance: Means | None = None, *, title: str = "") -> Figure:
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
    with house_style():
        figure = new_figure(max(4.8, 1.6 + 0.75 * len(names)), 4.4)
        axes = figure.add_subplot()
        middle = np.arange(len(names), dtype=np.float64)
        entries: list[Any] = []
        for way, shift in zip(DIRECTIONS, (-_BAR / 2, _BAR / 2), strict=True):
            bars = axes.bar(middle + shift, _heights(means[way]), _BAR * 0.94, color=COLOURS[way], label=NAMES[way])
            entries.append(bars)
            if chance is not None:
                left, right = middle + shift - _BAR / 2, middle + shift + _BAR / 2
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
