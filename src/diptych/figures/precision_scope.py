"""Precision against the number of answers shown, for several methods, one panel for each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from diptych.errors import InvalidInputError
from diptych.figures.style import CHANCE, DASHES, NAMES, house_style, light_grid, new_figure
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours without yellow, which is too faint for a line. There are fewer than methods, so that markers
# tell lines of one colour apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
MOST_METHODS = len(_COLOURS) * len(_MARKERS)


def precision_scope(
    scopes: Sequence[int],
    precision: Mapping[str, Mapping[Direction, Sequence[float]]],
    chance: Mapping[Direction, float] | None = None,
    *,
    title: str = "",
) -> Figure:
    """Draw the precision of the first k answers against k, the scope, a line for each method.

    Zhang et al. (ACM Multimedia 2017, figure 3) draw such curves, as do Rasiwasia et al. (2007). ``chance``, the share
    of relevant items, is the same at every scope. Use it to see how many answers stay good, where MAP mixes all depths
    of a ranking. Values are those of `PrecisionScope`.

    >>> from diptych.figures import precision_scope
    >>> falling = {"image_query": [0.5, 0.4], "text_query": [0.6, 0.3]}
    >>> figure = precision_scope([10, 50], {"CCA": falling}, {"image_query": 0.1, "text_query": 0.1})
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['CCA', 'chance']
    """
    if not 0 < len(precision) <= MOST_METHODS:
        raise InvalidInputError(f"draw one to {MOST_METHODS} methods, got {len(precision)}; more cannot be told apart")
    for name, curves in precision.items():
        if any(len(curves[way]) != len(scopes) for way in DIRECTIONS):
            raise InvalidInputError(f"{name} needs one precision for each of the {len(scopes)} scopes")
    highest = max(max(curve[way]) for curve in precision.values() for way in DIRECTIONS)
    with house_style():
        figure = new_figure(12.0, 4.6)
        panels = figure.subplots(1, len(DIRECTIONS), sharey=True)
        for axes, way in zip(panels, DIRECTIONS, strict=True):
            for number, (name, curves) in enumerate(precision.items()):
                colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
                axes.plot(scopes, curves[way], color=colour, marker=marker, markersize=5, linewidth=1.6, label=name)
            if chance is not None:
                axes.axhline(chance[way], color=CHANCE, linestyle=DASHES, linewidth=1.5, label="chance")
            axes.set(ylim=(0, min(1.02, 1.08 * highest)), xlabel="answers shown, k", title=NAMES[way])
            light_grid(axes)
        panels[0].set_ylabel("precision of the first k")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure
