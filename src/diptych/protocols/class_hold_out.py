"""Repeated hold-outs of whole classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diptych.data import Pairs
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class ClassHoldOut:
    """Hold out all pairs of a random share of the classes, several times.

    What is learned is then asked for classes it never saw, as in the extendable protocol of Liu et al., and parameters
    that only memorise the training classes lose. At least two classes are held out, because with one every answer is
    right, and at least two are learned from.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import ClassHoldOut
    >>> pairs = Pairs(np.eye(10), np.eye(10), labels=np.repeat(np.arange(5), 2))
    >>> train, held_out = next(ClassHoldOut(share=0.4).splits(pairs))
    >>> train.n_images, held_out.n_images, set(train.labels) & set(held_out.labels)
    (6, 4, set())
    """

    repeats: int = 5
    share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InvalidInputError(f"repeats must be at least 1, got {self.repeats}")
        if not 0 < self.share < 1:
            raise InvalidInputError(f"share must lie between 0 and 1, got {self.share}")

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), the classes drawn anew from the seed and the repetition's number."""
        if pairs.labels is None or pairs.n_classes < 4:
            raise InvalidInputError(
                "holding out classes needs labels of at least 4 classes, two to learn and two to ask for; "
                "use HoldOut for pairs without them"
            )
        held_out = min(max(round(self.share * pairs.n_classes), 2), pairs.n_classes - 2)
        for repetition in range(self.repeats):
            seed = int(np.random.SeedSequence([self.seed, repetition]).generate_state(1)[0])
            parts = pairs.split_classes(held_out, seed=seed)
            yield parts.second, parts.first
