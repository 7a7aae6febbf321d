"""A score in groups of queries, for one or more methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diptych.errors import InvalidInputError
from diptych.figures.style import CHANCE, house_style, light_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, as light and dark in turn, so that neighbours are told apart in grey too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7")
_WIDTH = 0.8
MOST_METHODS = len(_COLOURS)


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
    if not 0 < len(scores) <= MOST_METHODS:
        raise InvalidInputError(f"draw one to {MOST_METHODS} methods, got {len(scores)}; more cannot be told apart")
    bars = [] if chance is None else [("random", chance, CHANCE)]
    bars += [(name, values, colour) for (name, values), colour in zip(scores.items(), _COLOURS, strict=False)]
    if not groups or any(len(values) != len(groups) for _, values, _ in bars):
        raise InvalidInputError("each group needs one score of every method, and there must be at least one group")
    middle, width = np.arange(len(groups), dtype=np.float64), _WIDTH / len(bars)
    with house_style():
        figure = new_figure(max(6.4, 1.2 + 0.24 * len(groups) * (len(bars) + 1)), 4.6)
        axes = figure.add_subplot()
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
