"""Curves along the ranking: precision against recall, against scope and within Hamming radii, and cumulative match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diptych.errors import InvalidInputError
from diptych.figures.style import (
    CHANCE,
    COLOURS,
    DASHES,
    MARKERS,
    SERIES_COLOURS,
    SERIES_MARKERS,
    EvaluationByDirection,
    check_number_of_methods,
    curve_of,
    house_style,
    legend_entry,
    light_grid,
    new_figure,
    one_panel,
    series_style,
)
from diptych.metrics import CMCCurve, HammingLookup, InterpolatedPrecisionRecall, PrecisionRecallCurve
from diptych.space import DIRECTION_NAMES, DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Lines of different colours, black left out: it is the ink of the axes.
MAX_PRECISION_RECALL_METHODS = len(SERIES_COLOURS) - 1
_MAX_BITS_WITH_MARKS = 33
MAX_SCOPE_METHODS = len(SERIES_COLOURS) * len(SERIES_MARKERS)
_NEARLY_ALL = 0.999


def precision_recall(
    evaluation: EvaluationByDirection,
    chance: EvaluationByDirection | None = None,
    *,
    title: str = "",
    interpolated: bool = True,
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
    with one_panel() as (figure, axes):
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
    check_number_of_methods(len(precision), MAX_PRECISION_RECALL_METHODS)
    highest = max(max(curve[way]) for curve in precision.values() for way in DIRECTIONS)
    with house_style():
        figure = new_figure(12.0, 4.6)
        panels = figure.subplots(1, len(DIRECTIONS), sharey=True)
        for axes, way in zip(panels, DIRECTIONS, strict=True):
            for number, (name, curve) in enumerate(precision.items()):
                axes.plot(_recall_levels(curve[way]), curve[way], **series_style(number), markersize=5, label=name)
            if chance is not None:
                axes.plot(_recall_levels(chance[way]), chance[way], color=CHANCE, linestyle=DASHES, label="chance")
            axes.set(xlim=(-0.01, 1.01), ylim=(0, min(1.02, 1.08 * highest)), xlabel="recall")
            axes.set_title(DIRECTION_NAMES[way])
            light_grid(axes)
        panels[0].set_ylabel("interpolated precision")
        # Beside the panels: methods as good as these leave no corner free.
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure


def _recall_levels(curve: Sequence[float]) -> np.ndarray:
    return np.linspace(0, 1, len(curve))


def radius_precision_recall(lookups: Mapping[Direction, HammingLookup], *, title: str = "") -> Figure:
    """Draw mean precision against mean recall, a point for each radius from 0 to the number of bits.

    Points to the left are small radii, and the last one is the whole gallery, whose precision is chance. A query that
    finds nothing counts as zero, so that a line that rises first shows buckets that are mostly empty; radius 2 is
    marked. Every query weighs the same: thrown together, pictures that ask for texts and these texts that ask for these
    pictures would have one and the same line. Use it to choose how many buckets to open.

    >>> import numpy as np
    >>> from diptych.figures import radius_precision_recall
    >>> from diptych.metrics import HammingLookup, SameLabel
    >>> codes = np.array([[0b11110000], [0b11100000], [0]], dtype=np.uint8)
    >>> lookup = HammingLookup.from_codes(codes, codes, SameLabel(list("aab"), list("aab")), n_bits=4)
    >>> radius_precision_recall({"image_query": lookup, "text_query": lookup}).axes[0].get_xlabel()
    'recall'
    """
    with one_panel() as (figure, axes):
        highest = 0.0
        for way in DIRECTIONS:
            lookup, curve = lookups[way], lookups[way].mean_curve()
            axes.plot(
                curve.x,
                curve.y,
                color=COLOURS[way],
                marker=MARKERS[way] if lookup.n_bits < _MAX_BITS_WITH_MARKS else None,
                markersize=4,
                label=DIRECTION_NAMES[way],
            )
            highest = max(highest, float(curve.y.max()))
            radius = min(2, lookup.n_bits)
            axes.plot(curve.x[radius], curve.y[radius], marker="o", markersize=11, mfc="none", color=COLOURS[way])
        axes.plot([], [], marker="o", markersize=11, markerfacecolor="none", linestyle="none", color="#222222")
        axes.lines[-1].set_label("radius 2")
        axes.set(xlim=(-0.01, 1.01), ylim=(0, min(1.02, 1.12 * highest)), xlabel="recall")
        axes.set_ylabel("precision, nothing found is zero")
        axes.set_title(title)
        light_grid(axes)
        axes.legend(loc="upper right")
    return figure


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
    check_number_of_methods(len(precision), MAX_SCOPE_METHODS)
    for name, curves in precision.items():
        if any(len(curves[way]) != len(scopes) for way in DIRECTIONS):
            raise InvalidInputError(f"{name} needs one precision for each of the {len(scopes)} scopes")
    highest = max(max(curve[way]) for curve in precision.values() for way in DIRECTIONS)
    with house_style():
        figure = new_figure(12.0, 4.6)
        panels = figure.subplots(1, len(DIRECTIONS), sharey=True)
        for axes, way in zip(panels, DIRECTIONS, strict=True):
            for number, (name, curves) in enumerate(precision.items()):
                axes.plot(scopes, curves[way], **series_style(number), markersize=5, linewidth=1.6, label=name)
            if chance is not None:
                axes.axhline(chance[way], color=CHANCE, linestyle=DASHES, linewidth=1.5, label="chance")
            axes.set(ylim=(0, min(1.02, 1.08 * highest)), xlabel="answers shown, k", title=DIRECTION_NAMES[way])
            light_grid(axes)
        panels[0].set_ylabel("precision of the first k")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure


def cmc(evaluation: EvaluationByDirection, chance: EvaluationByDirection | None = None, *, title: str = "") -> Figure:
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
    with one_panel() as (figure, axes):
        for way, points in curves.items():
            axes.plot(points.x, points.y, color=COLOURS[way], label=legend_entry(evaluation[way], way))
        levels = [] if chance is None else [curve_of(chance[way], CMCCurve) for way in DIRECTIONS]
        for number, level in enumerate(levels):
            axes.plot(level.x, level.y, color=CHANCE, linestyle=DASHES, linewidth=1.5, label="" if number else "chance")
        # The rank at which nearly all queries have an answer; the rest of the curve is flat.
        last = max(int(np.searchsorted(one.y, _NEARLY_ALL * one.y[-1]) + 1) for one in (*curves.values(), *levels))
        axes.set_xscale("log")
        round_ranks = (step * 10**power for power in range(9) for step in (1, 2, 5))
        ticks = [rank for rank in round_ranks if rank <= max(last, 2)]
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set(xlim=(1, max(last, 2)), ylim=(0, 1.01), xlabel="rank k", title=title)
        axes.set_ylabel("queries with a right answer among the first k")
        light_grid(axes)
        axes.legend(loc="lower right")
    return figure
