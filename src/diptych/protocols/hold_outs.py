"""Ways of holding out training pairs, to choose parameters on: random pairs, queries, whole classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.protocols.retrieval import Retrieval

_QUERIES = 0.5


def class_list(pairs: Pairs) -> tuple[str, ...]:
    """Return the names of the classes that occur, in the order of tables.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import class_list
    >>> class_list(Pairs(np.eye(3), np.eye(3), labels=[2, 0, 2], class_names=["cat", "dog", "emu"]))
    ('cat', 'emu')
    """
    if pairs.labels is None:
        raise InvalidInputError("these pairs have no labels, so they have no classes to divide")
    if pairs.is_multi_label:
        occurs = np.flatnonzero(pairs.labels.any(axis=0))
        return tuple(pairs.class_names[column] for column in occurs)
    present = np.unique(pairs.labels)
    if pairs.labels.dtype.kind == "U":
        return tuple(name for name in pairs.class_names if name in set(present.tolist()))
    return tuple(pairs.class_name(value) for value in present)


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
    """Hold out all pairs of a random share of the classes, several times, and never the same classes twice.

    What is learned is then asked for classes it never saw, as in the extendable protocol of Liu et al., and parameters
    that only memorise the training classes lose. At least two classes are held out, because with one every answer is
    right, and at least two are learned from. Where there are fewer sets of classes than ``repeats``, each is held out
    once and a warning says how many there are. ``fold`` sets the draws of several folds apart.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import ClassHoldOut
    >>> pairs = Pairs(np.eye(10), np.eye(10), labels=np.repeat(np.arange(5), 2))
    >>> train, held_out = next(ClassHoldOut(share=0.4).splits(pairs))
    >>> train.n_images, held_out.n_images, set(train.labels) & set(held_out.labels)
    (6, 4, set())
    """

    share: float = 0.2
    fold: int = 0

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), the sets of classes drawn without replacement from the seed and the fold."""
        classes = () if pairs.labels is None else class_list(pairs)
        if len(classes) < 4:
            raise InvalidInputError(
                "holding out classes needs labels of at least 4 classes, two to learn and two to ask for; "
                "use HoldOut for pairs without them"
            )
        for chosen in self._class_sets(len(classes)):
            parts = pairs.split_classes([classes[number] for number in chosen])
            yield parts.second, parts.first

    def _class_sets(self, n_classes: int) -> list[tuple[int, ...]]:
        size = min(max(round(self.share * n_classes), 2), n_classes - 2)
        possible = math.comb(n_classes, size)
        if possible < self.repeats:
            warnings.warn(
                f"{size} of {n_classes} classes can be held out in {possible} ways, so {possible} hold-outs are made "
                f"and not repeats={self.repeats}",
                stacklevel=3,
            )
        rng = np.random.default_rng([self.seed, self.fold])
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < min(self.repeats, possible):
            drawn[tuple(sorted(rng.permutation(n_classes)[:size].tolist()))] = None
        return list(drawn)


@dataclass(frozen=True)
class ClassQueryHoldOut(_Repeated):
    """Hold out all pairs of a share of the classes; half of them ask for the other half.

    This is extendable retrieval in small: the classes asked for were not learned, and no query finds its own partner.
    Which share the paper tunes on, if any, is not said; ours is a fifth, and at least two classes, because with one
    every answer is right. The classes are drawn as `ClassHoldOut` draws them.

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
    fold: int = 0

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held-out queries against held-out database)."""
        of_fold = numbered_seed(self.seed, self.fold)
        drawn = ClassHoldOut(self.repeats, self.share, self.seed, self.fold).splits(pairs)
        for repetition, (train, held_out) in enumerate(drawn):
            seed, stratify = numbered_seed(of_fold, repetition), not held_out.is_multi_label
            database, queries = held_out.split(_QUERIES, seed=seed, stratify=stratify)
            yield train, Retrieval(queries, database)
