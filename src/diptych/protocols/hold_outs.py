"""Ways of holding out training pairs, to choose parameters on: random pairs, queries, whole classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.protocols.retrieval import Retrieval

_QUERIES = 0.5


class HoldOuts(Protocol):
    """A way of holding out parts of the training pairs; its repr says everything that decides the draws."""

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]] | Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held out): pairs that ask for one another, or queries with a gallery of their own."""


def numbered_seed(seed: int, number: int) -> int:
    """Return the seed of one of several draws, which depends on no other draw."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


@dataclass(frozen=True)
class _Repeated:
    repeats: int = 5
    share: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InvalidInputError(f"repeats must be at least 1, got {self.repeats}")
        if not 0 < self.share < 1:
            raise InvalidInputError(f"share must lie between 0 and 1, got {self.share}")

    def _seeds(self) -> Iterator[int]:
        return (numbered_seed(self.seed, repetition) for repetition in range(self.repeats))


@dataclass(frozen=True)
class HoldOut(_Repeated):
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

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), each drawn anew from the seed and the repetition's number."""
        for seed in self._seeds():
            yield pairs.split(self.share, seed=seed)


@dataclass(frozen=True)
class QueryHoldOut(_Repeated):
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

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, queries against train), drawn as `HoldOut` draws."""
        for seed in self._seeds():
            train, held_out = pairs.split(self.share, seed=seed)
            yield train, Retrieval(held_out, train)


@dataclass(frozen=True)
class ClassHoldOut(_Repeated):
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

    share: float = 0.2

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), the classes drawn anew from the seed and the repetition's number."""
        if pairs.labels is None or pairs.n_classes < 4:
            raise InvalidInputError(
                "holding out classes needs labels of at least 4 classes, two to learn and two to ask for; "
                "use HoldOut for pairs without them"
            )
        held_out = min(max(round(self.share * pairs.n_classes), 2), pairs.n_classes - 2)
        for seed in self._seeds():
            parts = pairs.split_classes(held_out, seed=seed)
            yield parts.second, parts.first


@dataclass(frozen=True)
class ClassQueryHoldOut(_Repeated):
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

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held-out queries against held-out database), the classes drawn as `ClassHoldOut` draws."""
        for train, held_out in ClassHoldOut(self.repeats, self.share, self.seed).splits(pairs):
            stratify = not held_out.is_multi_label
            database, queries = held_out.split(_QUERIES, seed=self.seed, stratify=stratify)
            yield train, Retrieval(queries, database)
