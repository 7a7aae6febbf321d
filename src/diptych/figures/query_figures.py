"""Results of a query log: scores in groups of queries, shares of visual queries, and noise among the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diptych.errors import InvalidInputError
from diptych.figures.style import CHANCE, COLOURS, check_number_of_methods, light_grid, one_panel, series_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Okabe and Ito's colours, as light and dark in turn, so that neighbours are told apart in grey too.
_GROUP_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7")
_GROUP_WIDTH = 0.8
MOST_QUERY_GROUP_METHODS = len(_GROUP_COLOURS)


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
    check_number_of_methods(len(scores), MOST_QUERY_GROUP_METHODS)
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
    hold when nobody filtered the candidates first. ``against`` names what is varied instead.

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
