"""The cumulative match characteristic, both directions in one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from diptych.figures.directions import BothWays, curve_of, legend_entry
from diptych.figures.style import CHANCE, COLOURS, DASHES, house_style, light_grid, new_figure
from diptych.metrics import CMCCurve, CurvePoints
from diptych.space import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NEARLY_ALL = 0.999


def cmc(evaluation: BothWays, chance: BothWays | None = None, *, title: str = "") -> Figure:
    """Draw the share of queries with a right answer among the first k, for every k that still changes something.

    ``evaluation`` must hold a `CMCCurve`; ``chance`` is the same evaluation of a ranking that prefers nothing, drawn
    dashed. Ranks have a logarithmic axis, because the first page matters most. Use it when one right answer is enough.

    >>> from diptych.figures import cmc
    >>> from diptych.metrics import CMCCurve, SameLabel, evaluate_scores
    >>> result = evaluate_scores([[0.9, 0.1], [0.8, 0.2]], SameLabel(["cat", "dog"], ["cat", "dog"]), [CMCCurve()])
    >>> cmc({"image_query": result, "text_query": result}).axes[0].get_xlabel()
    'rank k'
    """
    curves = {way: curve_of(evaluation[way], CMCCurve) for way in DIRECTIONS}
    with house_style():
        figure = new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        for way, points in curves.items():
            axes.plot(
                points.x,
                points.y,
                color=COLOURS[way],
                label=legend_entry(evaluation[way], way),
            )
        levels = [] if chance is None else [curve_of(chance[way], CMCCurve) for way in DIRECTIONS]
        for number, level in enumerate(levels):
            axes.plot(level.x, level.y, color=CHANCE, linestyle=DASHES, linewidth=1.5, label="" if number else "chance")
        last = max(_last_rank(points) for points in (*curves.values(), *levels))
        axes.set_xscale("log")
        ticks = _round_ranks(last)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set(xlim=(1, max(last, 2)), ylim=(0, 1.01), xlabel="rank k", title=title)
        axes.set_ylabel("queries with a right answer among the first k")
        light_grid(axes)
        axes.legend(loc="lower right")
    return figure


def _last_rank(points: CurvePoints) -> int:
    """Return the rank at which nearly all queries have an answer, where the rest of the curve is flat."""
    return int(np.searchsorted(points.y, _NEARLY_ALL * points.y[-1]) + 1)


def _round_ranks(last: int) -> list[int]:
    ranks = [step * 10**power for power in range(9) for step in (1, 2, 5)]
    return [rank for rank in ranks if rank <= max(last, 2)]
