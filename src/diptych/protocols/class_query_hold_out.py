"""Hold-outs of classes that have queries and a database of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diptych.data import Pairs
from diptych.protocols.class_hold_out import ClassHoldOut
from diptych.protocols.retrieval import Retrieval

_QUERIES = 0.5


@dataclass(frozen=True)
class ClassQueryHoldOut:
    """Hold out all pairs of a share of the classes; half of them ask for the other half.

    This is extendable retrieval in small: the classes asked for were not learned, and no query finds its own partner.
    Which share the paper tunes on, if any, is not said; ours is a fifth, and at least two classes, because with one
    every answer is right.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import ClassQueryHoldOut
    >>> pairs = Pairs(np.eye(20), np.eye(20), labels=np.repeat(np.arange(5), 4))
    >>> train, retrieval = next(ClassQueryHoldOut().splits(pairs))
    >>> train.n_images, retrieval.queries.n_images, retrieval.gallery.n_images
    (12, 4, 4)
    """

    repeats: int = 3
    share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        ClassHoldOut(self.repeats, self.share, self.seed)

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held-out queries against held-out database), the classes drawn as `ClassHoldOut` draws."""
        holding = ClassHoldOut(self.repeats, self.share, self.seed)
        for train, held_out in holding.splits(pairs):
            stratify = not held_out.is_multi_label
            database, queries = held_out.split(_QUERIES, seed=self.seed, stratify=stratify)
            yield train, Retrieval(queries, database)
