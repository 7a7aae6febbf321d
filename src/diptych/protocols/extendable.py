"""Retrieval of classes that were not learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError
from diptych.protocols.class_fold import ClassFold
from diptych.protocols.class_list import class_list
from diptych.protocols.retrieval import Retrieval

_FEWEST_CLASSES = 4


@dataclass(frozen=True)
class Extendable:
    """Learn from half of the classes; ask for these, and for the other half.

    The classes are shuffled ``folds`` times. Each time the first half is learned from, and every half has a database
    (the training part of the data set) and queries (its test part). Non-extendable retrieval asks for the training
    classes and finds them in the very database that was learned from; extendable retrieval asks for the other classes
    in their own database. Results are averaged over the folds. The shuffles of the paper are not published, so these
    are ours: fold k depends on the seed and k alone, and its class lists are kept with every result. An odd number of
    classes gives the training half one more.

    References
    ----------
    Liu et al., "A new evaluation protocol and benchmarking results for extendable cross-media retrieval", section II,
    whose number of folds is 5.

    >>> import numpy as np
    >>> from diptych.data import DatasetSplits, Pairs
    >>> from diptych.protocols import Extendable
    >>> pairs = Pairs(np.eye(8), np.eye(8), labels=list("aabbccdd"))
    >>> splits = DatasetSplits(train=pairs.select(range(0, 8, 2)), test=pairs.select(range(1, 8, 2)))
    >>> fold = next(Extendable().class_folds(splits))
    >>> len(fold.train_classes), fold.train.n_images, sorted(fold.train_classes + fold.test_classes)
    (2, 2, ['a', 'b', 'c', 'd'])
    >>> set(fold.train.labels) & set(fold.unseen.gallery.labels)
    set()
    """

    folds: int = field(default=5, repr=False)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.folds < 1:
            raise InvalidInputError(f"folds must be at least 1, got {self.folds}")

    def class_folds(self, splits: DatasetSplits) -> Iterator[ClassFold]:
        """Yield the folds one after another; fold k is the same however many are asked for."""
        for number in range(self.folds):
            yield self.class_fold(splits, number)

    def class_fold(self, splits: DatasetSplits, number: int) -> ClassFold:
        """Return one fold."""
        if not 0 <= number < self.folds:
            raise InvalidInputError(f"there are folds 0 to {self.folds - 1}, not {number}")
        classes = class_list(splits.train)
        if len(classes) < _FEWEST_CLASSES:
            raise InvalidInputError(
                f"extendable retrieval needs at least {_FEWEST_CLASSES} classes, two to learn and two to ask for, "
                f"but the data set has {len(classes)}"
            )
        order = np.random.default_rng([self.seed, number]).permutation(len(classes))
        shuffled = tuple(classes[position] for position in order)
        half = (len(classes) + 1) // 2
        database, asked = _halves(splits.train, shuffled[:half]), _halves(splits.test, shuffled[:half])
        return ClassFold(
            number,
            shuffled[:half],
            shuffled[half:],
            database[0],
            seen=Retrieval(asked[0], database[0]),
            unseen=Retrieval(asked[1], database[1]),
        )


def _halves(pairs: Pairs, classes: tuple[str, ...]) -> tuple[Pairs, Pairs]:
    """Return the pairs of ``classes`` and those of the others; a pair of both is in neither."""
    present = set(class_list(pairs))
    parts = pairs.split_classes([name for name in classes if name in present])
    return parts.first, parts.second
