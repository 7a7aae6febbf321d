"""Precision against recall, both directions in one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.figures.directions import BothWays, curve_of, legend_entry
from diptych.figures.style import CHANCE, COLOURS, DASHES, MARKERS, house_style, light_grid, new_figure
from diptych.metrics import InterpolatedPrecisionRecall, PrecisionRecallCurve
from diptych.space import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def precision_recall(
    evaluation: BothWays, chance: BothWays | None = None, *, title: str = "", interpolated: bool = True
) -> Figure:
    """Draw precision against recall for image and text queries.

    ``evaluation`` must hold an `InterpolatedPrecisionRecall`, the 11-point curve of Costa Pereira et al. (TPAMI 2014),
    or, with ``interpolated=False``, a `PrecisionRecallCurve` of every scope. ``chance`` is the same evaluation of a
    ranking that prefers nothing, drawn dashed. Use the 11-point curve to compare with the literature, the full one to
    see every rank.

    >>> from diptych.figures import precision_recall
    >>> from diptych.metrics import AP, InterpolatedPrecisionRecall, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog"])
    >>> result = evaluate_scores([[0.9, 0.1], [0.8, 0.2]], relevance, [AP(), InterpolatedPrecisionRecall()])
    >>> figure = precision_recall({"image_query": result, "text_query": result}, title="An example")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['image query, MAP 0.750', 'text query, MAP 0.750']
    """
    kind = InterpolatedPrecisionRecall if interpolated else PrecisionRecallCurve
    highest = 0.0
    with house_style():
        figure = new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        for way in DIRECTIONS:
            points = curve_of(evaluation[way], kind)
            axes.plot(
                points.x,
                points.y,
                color=COLOURS[way],
                marker=MARKERS[way] if interpolated else "",
                markersize=5,
                label=legend_entry(evaluation[way], way),
            )
            highest = max(highest, float(points.y.max()))
        if chance is not None:
            for number, way in enumerate(DIRECTIONS):
                level = curve_of(chance[way], kind)
                axes.plot(
                    level.x, level.y, color=CHANCE, linestyle=DASHES, linewidth=1.5, label="" if number else "chance"
                )
                highest = max(highest, float(level.y.max()))
        axes.set(xlim=(-0.01, 1.01), ylim=(0, min(1.02, 1.12 * highest)), xlabel="recall", title=title)
        axes.set_ylabel("interpolated precision" if interpolated else "precision")
        light_grid(axes)
        axes.legend(loc="upper right")
    return figure
