"""A score against the values of one parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diptych.figures.style import COLOURS, MARKERS, NAMES, house_style, light_grid, new_figure
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sensitivity(
    values: Sequence[float],
    means: Mapping[Direction, Sequence[float]],
    deviations: Mapping[Direction, Sequence[float]],
    *,
    label: str,
    title: str = "",
    score: str = "MAP",
) -> Figure:
    """Draw the mean score at each value of a parameter, with a band of one standard deviation to each side.

    Counts, which are whole numbers above zero, stand on a logarithmic axis, shares on a linear one. Use it to see
    whether a parameter deserves tuning at all, as figures 5 and 6 of Menon et al. (SDM 2015) do.

    >>> from diptych.figures import sensitivity
    >>> flat, narrow = [0.2, 0.25, 0.26], [0.01, 0.01, 0.01]
    >>> figure = sensitivity(
    ...     [1, 5, 10],
    ...     {"image_query": flat, "text_query": flat},
    ...     {"image_query": narrow, "text_query": narrow},
    ...     label="unlabelled pairs",
    ... )
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_xscale()
    ('unlabelled pairs', 'log')
    """
    highest = max(mean + spread for way in DIRECTIONS for mean, spread in zip(means[way], deviations[way], strict=True))
    with house_style():
        figure = new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        for way in DIRECTIONS:
            centre, spread = np.asarray(means[way]), np.asarray(deviations[way])
            axes.plot(values, centre, color=COLOURS[way], marker=MARKERS[way], markersize=5, label=NAMES[way])
            axes.fill_between(values, centre - spread, centre + spread, color=COLOURS[way], alpha=0.2, linewidth=0)
        if all(value > 0 and float(value).is_integer() for value in values):
            axes.set_xscale("log")
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.set_xticks([], minor=True)
        axes.set(ylim=(0, 1.12 * highest), xlabel=label, ylabel=score, title=title)
        light_grid(axes)
        axes.legend(loc="lower right")
    return figure
