"""A score against the values of one parameter, and against the length of hash codes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diptych.errors import InvalidInputError
from diptych.figures.style import (
    CHANCE,
    COLOURS,
    DASHES,
    MARKERS,
    house_style,
    light_grid,
    new_figure,
    one_panel,
    series_style,
)
from diptych.space import DIRECTION_NAMES, DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL_GAP = 0.052
_DODGE = 0.14


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
    with one_panel() as (figure, axes):
        for way in DIRECTIONS:
            centre, spread = np.asarray(means[way]), np.asarray(deviations[way])
            axes.plot(values, centre, color=COLOURS[way], marker=MARKERS[way], markersize=5, label=DIRECTION_NAMES[way])
            axes.fill_between(values, centre - spread, centre + spread, color=COLOURS[way], alpha=0.2, linewidth=0)
        if all(value > 0 and float(value).is_integer() for value in values):
            axes.set_xscale("log")
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.set_xticks([], minor=True)
        axes.set(ylim=(0, 1.12 * highest), xlabel=label, ylabel=score, title=title)
        light_grid(axes)
        axes.legend(loc="lower right")
    return figure


class BitBudgetLine(NamedTuple):
    """Mean and standard deviation over folds at each length, in one setting and direction."""

    means: Sequence[float]
    deviations: Sequence[float]


def bit_budget(
    bits: Sequence[int],
    lines: Mapping[str, Mapping[str, Mapping[Direction, BitBudgetLine]]],
    chance: Mapping[str, Mapping[Direction, float]],
    *,
    supervised: Collection[str] = (),
    score: str = "MAP",
    title: str = "",
    costs: Sequence[str] = (),
) -> Figure:
    """Draw ``score`` against bits: a row of panels for each setting, a panel for each direction, a line for a method.

    ``lines`` are keyed by method, setting and direction, ``chance`` by setting and direction. Methods that learn from
    labels (``supervised``) have full lines, the others dashed ones; whiskers are one standard deviation over folds to
    each side. ``costs`` stand below the lengths, such as bytes and searches in a second. Use it to choose a length: the
    one from which a line no longer rises is what the method can use.

    >>> from diptych.figures import bit_budget
    >>> from diptych.figures.parameter_curves import BitBudgetLine
    >>> line = BitBudgetLine([0.2, 0.3], [0.01, 0.01])
    >>> figure = bit_budget(
    ...     [8, 16],
    ...     {"cvh": {"seen": {"image_query": line, "text_query": line}}},
    ...     {"seen": {"image_query": 0.1, "text_query": 0.1}},
    ... )
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['seen, image query', 'seen, text query']
    """
    if not lines or not bits:
        raise InvalidInputError("there is nothing to draw; measure at least one method at one length")
    if costs:
        ticks = [f"{length}\n{cost}" for length, cost in zip(bits, costs, strict=True)]
    else:
        ticks = [str(length) for length in bits]
    settings = list(chance)
    looks = {
        name: series_style(number) | {"linestyle": "-" if name in supervised else DASHES}
        for number, name in enumerate(lines)
    }
    with house_style():
        figure = new_figure(12.4, 1.2 + 3.9 * len(settings))
        panels = figure.subplots(len(settings), len(DIRECTIONS), sharex=True, squeeze=False)
        for row, setting in enumerate(settings):
            for axes, way in zip(panels[row], DIRECTIONS, strict=True):
                drawn = {name: by_setting[setting][way] for name, by_setting in lines.items() if setting in by_setting}
                _draw_panel(axes, bits, drawn, chance[setting][way], looks)
                axes.set_title(f"{setting}, {DIRECTION_NAMES[way]}")
            panels[row][0].set_ylabel(score)
        for axes in panels[-1]:
            axes.set_xlabel("bits" + ("" if not costs else "; below: bytes, exact searches among the codes"))
            axes.set_xticks(np.log2(bits), ticks)
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure


def _draw_panel(
    axes: Axes,
    bits: Sequence[int],
    drawn: Mapping[str, BitBudgetLine],
    chance: float,
    looks: Mapping[str, Mapping[str, Any]],
) -> None:
    places = np.log2(bits)
    # Side by side, so that whiskers do not cover each other.
    shifts = np.linspace(-_DODGE, _DODGE, len(drawn)) if len(drawn) > 1 else np.zeros(1)
    for shift, (name, line) in zip(shifts, drawn.items(), strict=True):
        axes.errorbar(
            places + shift, line.means, yerr=line.deviations, markersize=5, linewidth=1.6, elinewidth=0.7, **looks[name]
        )
    axes.axhline(chance, color=CHANCE, linestyle=(0, (1, 2)), linewidth=1.5)
    tops = [mean + spread for line in drawn.values() for mean, spread in zip(line.means, line.deviations, strict=True)]
    low = min([chance, *(mean for line in drawn.values() for mean in line.means)])
    high = max([chance, *tops])
    margin = 0.08 * (high - low) or 0.01
    axes.set_ylim(max(0.0, low - 2 * margin), min(1.02, high + margin))
    axes.set_xlim(places[0] - 0.2, places[-1] + 0.2)
    light_grid(axes)
    ends = {name: float(line.means[-1]) for name, line in drawn.items()} | {"chance": chance}
    for name, height in _spread_out(ends, *axes.get_ylim()).items():
        axes.annotate(
            name,
            xy=(1, ends[name]),
            xytext=(1.045, height),
            xycoords=("axes fraction", "data"),
            textcoords=axes.transAxes,
            color=looks[name]["color"] if name in looks else CHANCE,
            fontsize=8.5,
            va="center",
            arrowprops={"arrowstyle": "-", "color": "#BBBBBB", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def _spread_out(ends: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    """Return heights for the names, as shares of the panel, in the order of the values and never too close."""
    names = sorted(ends, key=ends.__getitem__)
    wanted = np.array([(ends[name] - low) / (high - low) for name in names])
    gap = min(_LABEL_GAP, 1.0 / max(1, len(names) - 1))
    # Push up from below what is too close, then down from the top what was pushed out.
    heights = wanted.copy()
    for number in range(1, len(heights)):
        heights[number] = max(heights[number], heights[number - 1] + gap)
    heights[-1] = min(heights[-1], 1.0)
    for number in range(len(heights) - 2, -1, -1):
        heights[number] = min(heights[number], heights[number + 1] - gap)
    return dict(zip(names, heights.tolist(), strict=True))
