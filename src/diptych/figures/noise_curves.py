"""A score against the amount of noise among the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from diptych.errors import InvalidInputError
from diptych.figures.style import CHANCE, house_style, light_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours without yellow; markers and dashes tell lines of one colour apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")


def noise_curves(
    folds: Sequence[int], scores: Mapping[str, Sequence[float]], *, score: str = "NDCG@25", title: str = ""
) -> Figure:
    """Draw the score of each method against the fold of noise, the best at the last fold first in the legend.

    Figure 7 of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018, has this
    form: at fold h, h times as many irrelevant pictures stand among those that were judged for a query
    (:func:`diptych.protocols.with_noise`). A line called ``random`` is drawn as chance. Use it to see which methods
    hold when nobody filtered the candidates first.

    >>> from diptych.figures import noise_curves
    >>> figure = noise_curves([0, 1], {"PSI": [0.5, 0.4], "random": [0.4, 0.2]})
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['PSI', 'random']
    """
    if not scores or not folds or any(len(values) != len(folds) for values in scores.values()):
        raise InvalidInputError("each method needs one score at every fold, and there must be at least one of both")
    ranked = sorted(scores, key=lambda name: -scores[name][-1])
    with house_style():
        figure = new_figure(8.4, 4.8)
        axes = figure.add_subplot()
        for number, name in enumerate(ranked):
            if name == "random":
                axes.plot(folds, scores[name], color=CHANCE, linestyle=(0, (1, 2)), label=name)
                continue
            colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
            axes.plot(folds, scores[name], color=colour, marker=marker, markersize=4.5, linewidth=1.4, label=name)
        axes.set_xticks(list(folds))
        axes.set(xlabel="irrelevant pictures added, times those judged", ylabel=score, title=title)
        axes.set_ylim(bottom=0)
        light_grid(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure
