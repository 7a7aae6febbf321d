"""Hold-outs of queries that search what was learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diptych.data import Pairs
from diptych.protocols.hold_out import HoldOut
from diptych.protocols.retrieval import Retrieval


@dataclass(frozen=True)
class QueryHoldOut:
    """Hold out a random share of the pairs as queries; the others are learned from and searched.

    This is non-extendable retrieval in small: there the gallery is the training data itself, so that a method that
    memorises it is judged in tuning as it will be judged in the end.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import QueryHoldOut
    >>> train, retrieval = next(QueryHoldOut().splits(Pairs(np.eye(8), np.eye(8))))
    >>> retrieval.queries.n_images, retrieval.gallery is train
    (2, True)
    """

    repeats: int = 3
    share: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        HoldOut(self.repeats, self.share, self.seed)

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, queries against train), drawn as `HoldOut` draws."""
        for train, held_out in HoldOut(self.repeats, self.share, self.seed).splits(pairs):
            yield train, Retrieval(held_out, train)
