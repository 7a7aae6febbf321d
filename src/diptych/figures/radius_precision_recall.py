"""Precision and recall within each Hamming radius, both directions in one figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from diptych.figures.style import COLOURS, MARKERS, NAMES, house_style, light_grid, new_figure
from diptych.metrics import HammingLookup
from diptych.space import DIRECTIONS, Direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEW_RADII = 33


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
    with house_style():
        figure = new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        highest = 0.0
        for way in DIRECTIONS:
            lookup, curve = lookups[way], lookups[way].mean_curve()
            axes.plot(
                curve.x,
                curve.y,
                color=COLOURS[way],
                marker=MARKERS[way] if lookup.n_bits < _FEW_RADII else None,
                markersize=4,
                label=NAMES[way],
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
