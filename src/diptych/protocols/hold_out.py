"""Repeated random hold-outs of the training set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diptych.data import Pairs
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class HoldOut:
    """Hold out a random share of the training pairs, several times, with new random draws.

    The default is the protocol of Menon et al. (2015), section 7.4: a random 25 % held out, 5 times. With one
    repetition and 20 % it is that of Costa Pereira et al. (2014).

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import HoldOut
    >>> pairs = Pairs(np.eye(8), np.eye(8))
    >>> [(train.n_images, held_out.n_images) for train, held_out in HoldOut(repeats=2).splits(pairs)]
    [(6, 2), (6, 2)]
    """

    repeats: int = 5
    share: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InvalidInputError(f"repeats must be at least 1, got {self.repeats}")
        if not 0 < self.share < 1:
            raise InvalidInputError(f"share must lie between 0 and 1, got {self.share}")

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), each drawn anew from the seed and the repetition's number."""
        for repetition in range(self.repeats):
            yield pairs.split(
                self.share, seed=int(np.random.SeedSequence([self.seed, repetition]).generate_state(1)[0])
            )
