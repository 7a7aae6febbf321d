"""All that a method may see."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.data import Pairs
from diptych.protocols.hold_outs import HoldOuts


@dataclass(frozen=True)
class Training:
    """The pairs to learn from, and how to hold out parts of them to choose parameters.

    Whoever chooses and fits a method is handed this and nothing else, so that queries, galleries and classes that are
    asked for later cannot leak into it.
    """

    pairs: Pairs
    hold_outs: HoldOuts
