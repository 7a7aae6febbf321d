"""The share of visual queries against the threshold that makes a query visual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.errors import InvalidInputError
from diptych.figures.style import COLOURS, house_style, light_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    with house_style():
        figure = new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        axes.plot(
            thresholds, _percent(shares), color=COLOURS["image_query"], linestyle=":", marker="o", label="queries"
        )
        if weighted is not None:
            label = f"queries weighted by {weight}"
            axes.plot(thresholds, _percent(weighted), color=COLOURS["text_query"], marker="s", label=label)
        axes.set(ylim=(0, 102), xlabel="threshold of visualness", ylabel="% of queries above it", title=title)
        light_grid(axes)
        axes.legend(loc="best")
    return figure


def _percent(shares: Sequence[float]) -> list[float]:
    return [100 * share for share in shares]
