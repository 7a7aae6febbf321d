"""One sum over pairs of an objective."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.models.pairwise.all_pairs import AllPairs
from diptych.models.pairwise.losses import RowLoss
from diptych.models.pairwise.sampled_pairs import SampledPairs


@dataclass(frozen=True)
class PairTerm:
    """A set of pairs and what their scores cost; ``swapped`` pairs have texts on the left and pictures on the right."""

    pairs: AllPairs | SampledPairs
    loss: RowLoss
    swapped: bool = False
