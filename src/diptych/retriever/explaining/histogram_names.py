"""Words for the bins of colour and edge histograms."""

from __future__ import annotations

from diptych.encoders import ColourEdgeHistograms

_HUES = {
    0: "red",
    30: "orange",
    60: "yellow",
    90: "lime",
    120: "green",
    150: "sea green",
    180: "cyan",
    210: "azure",
    240: "blue",
    270: "violet",
    300: "magenta",
    330: "pink",
    360: "red",
}
_GREYS = ("black", "dark grey", "light grey", "white")
_HEIGHTS = ("dark", "mid", "bright")


def histogram_names(encoder: ColourEdgeHistograms) -> list[str]:
    """Return the names of the bins of one cell, in the order of the features.

    >>> from diptych.encoders import ColourEdgeHistograms
    >>> from diptych.retriever.explaining.histogram_names import histogram_names
    >>> names = histogram_names(ColourEdgeHistograms())
    >>> names[:3], names[24:28], names[-1]
    (['dark red', 'mid red', 'bright red'], ['black', 'dark grey', 'light grey', 'white'], 'no edges')
    """
    heights = [_place(number, encoder.brightness_bins, _HEIGHTS) for number in range(encoder.brightness_bins)]
    hues = [_hue(360 * number / encoder.hue_bins) for number in range(encoder.hue_bins)]
    colours = [f"{height} {hue}" for hue in hues for height in heights]
    greys = [_grey(number, encoder.grey_bins) for number in range(encoder.grey_bins)]
    edges = [_edge(180 * number / encoder.edge_bins) for number in range(encoder.edge_bins)]
    return [*colours, *greys, *edges, "no edges"]


def _hue(angle: float) -> str:
    nearest = min(_HUES, key=lambda known: abs(known - angle))
    return _HUES[nearest] if abs(nearest - angle) <= 15 else f"hue {angle:.0f}°"


def _place(number: int, bins: int, words: tuple[str, ...]) -> str:
    return words[number] if bins == len(words) else f"{100 * number / max(1, bins - 1):.0f} % bright"


def _grey(number: int, bins: int) -> str:
    return _GREYS[number] if bins == len(_GREYS) else f"{_place(number, bins, ())} grey"


def _edge(gradient: float) -> str:
    # Brightness changes across an edge, so the edge runs at a right angle to the gradient.
    special = {0.0: "upright edges", 90.0: "level edges"}
    return special.get(gradient, f"edges at {(90 - gradient) % 180:.0f}°")
