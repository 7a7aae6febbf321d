"""Precision against recall of several methods, one panel for each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diptych.errors import InvalidInputError
from diptych.figures.style import CHANCE, DASHES, NAMES, house_style, light_grid, new_figure
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours without yellow, which is too faint for a line; markers tell the lines apart without colour.
_LINES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
)
MOST_METHODS = len(_LINES)


def method_precision_recall(
    precision: Mapping[str, Mapping[Direction, Sequence[float]]],
    chance: Mapping[Direction, Sequence[float]] | None = None,
    *,
    title: str = "",
) -> Figure:
    """Draw interpolated precision at evenly spaced recall levels, a line for each method.

    The figures of Menon et al. (SDM 2015) and Costa Pereira et al. (TPAMI 2014) have this form. ``chance`` is the curve
    of a ranking that prefers nothing, drawn dashed. Use it to see at which depth of a ranking one method passes
    another, which a single number hides.

    >>> from diptych.figures import method_precision_recall
    >>> falling, level = [0.5, 0.3, 0.1], [0.1, 0.1, 0.1]
    >>> figure = method_precision_recall(
    ...     {"CCA": {"image_query": falling, "text_query": falling}},
    ...     {"image_query": level, "text_query": level},
    ... )
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['CCA', 'chance']
    """
    if not 0 < len(precision) <= MOST_METHODS:
        raise InvalidInputError(f"draw one to {MOST_METHODS} methods, got {len(precision)}; more cannot be told apart")
    highest = max(max(curve[way]) for curve in precision.values() for way in DIRECTIONS)
    with house_style():
        figure = new_figure(12.0, 4.6)
        panels = figure.subplots(1, len(DIRECTIONS), sharey=True)
        for axes, way in zip(panels, DIRECTIONS, strict=True):
            for (name, curve), (colour, marker) in zip(precision.items(), _LINES, strict=False):
                axes.plot(_recall(curve[way]), curve[way], color=colour, marker=marker, markersize=5, label=name)
            if chance is not None:
                axes.plot(_recall(chance[way]), chance[way], color=CHANCE, linestyle=DASHES, label="chance")
            axes.set(xlim=(-0.01, 1.01), ylim=(0, min(1.02, 1.08 * highest)), xlabel="recall", title=NAMES[way])
            light_grid(axes)
        panels[0].set_ylabel("interpolated precision")
        # Beside the panels: methods as good as these leave no corner free.
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure


def _recall(curve: Sequence[float]) -> np.ndarray:
    return np.linspace(0, 1, len(curve))
