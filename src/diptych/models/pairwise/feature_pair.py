"""An image feature and a text feature that belong together."""

from __future__ import annotations

from typing import NamedTuple


class FeaturePair(NamedTuple):
    """One entry of W: the names or numbers of the two features and the weight of their product in the score."""

    image: str | int
    text: str | int
    weight: float
