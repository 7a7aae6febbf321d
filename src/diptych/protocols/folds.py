"""What every protocol has in common, the split a data set comes with, and repeated random splits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from diptych.data import DatasetSplits, Items, Pairs
from diptych.errors import InvalidInputError
from diptych.protocols.hold_outs import HoldOut, HoldOuts, numbered_seed
from diptych.protocols.retrieval import Retrieval


@dataclass(frozen=True)
class Training:
    """The pairs to learn from, and how to hold out parts of them to choose parameters.

    Whoever chooses and fits a method is handed this and nothing else, so that queries, galleries and classes that are
    asked for later cannot leak into it.
    """

    pairs: Pairs
    hold_outs: HoldOuts


@dataclass(frozen=True)
class Fold:
    """What a method learns from, and what it is asked afterwards.

    ``train_classes`` and ``test_classes`` are empty where classes play no part.
    """

    number: int
    training: Training
    retrieval: Retrieval
    train_classes: tuple[str, ...] = ()
    test_classes: tuple[str, ...] = ()


class RetrievalProtocol(Protocol):
    """A declaration of who learns from what and who is asked; its repr says everything that decides the folds."""

    @property
    def setting(self) -> str:
        """One word for tables: ``standard``, ``seen``, ``unseen`` or ``draws``."""

    @property
    def n_folds(self) -> int:
        """The number of folds."""

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold, which depends on its number alone and not on the folds before it."""

    def redrawn(self, folds: int | None, seed: int) -> RetrievalProtocol:
        """Return the protocol with so many folds, None for as many as it has, all drawn with another seed."""


@dataclass(frozen=True)
class StandardSplit:
    """Learn from the training part; every item of the test part asks for the other side of the test part.

    The protocol of Costa Pereira et al. (2014) and of Menon et al. (2015) on Wikipedia, TVGraz and Pascal, and of
    caption retrieval. The partner of a query is in the gallery and counts as relevant.

    >>> from diptych.data import load_dataset
    >>> from diptych.protocols import StandardSplit
    >>> fold = StandardSplit().fold(load_dataset("scenes", n_train=8, n_test=4, size=32), 0)
    >>> fold.training.pairs.n_images, fold.retrieval.gallery is fold.retrieval.queries
    (8, True)
    """

    hold_outs: HoldOut = field(default_factory=HoldOut)
    setting: ClassVar[str] = "standard"
    n_folds: ClassVar[int] = 1

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return the split as the only fold."""
        if number != 0:
            raise InvalidInputError(f"a standard split has fold 0 alone, not {number}")
        return Fold(0, Training(splits.train, self.hold_outs), Retrieval(splits.test, splits.test))

    def redrawn(self, folds: int | None, seed: int) -> StandardSplit:
        """Return the split with other hold-outs; its one fold stays."""
        return replace(self, hold_outs=replace(self.hold_outs, seed=seed))


@dataclass(frozen=True)
class RandomDraws:
    """Put all pairs together and draw training and test part anew, several times.

    Results are averaged over the draws; Zhang et al. (MNiL) average over ten on MSCOCO. By default the test part is
    as large as the data set's own. Each class gives its share where ``stratify`` is True. The training and the test
    part of the data set must be of one kind: both features, or both raw.

    >>> import numpy as np
    >>> from diptych.data import DatasetSplits, Pairs
    >>> from diptych.protocols import RandomDraws
    >>> rows = np.arange(24.0).reshape(12, 2)
    >>> splits = DatasetSplits(train=Pairs(rows[:8], rows[:8]), test=Pairs(rows[8:], rows[8:], ids=range(8, 12)))
    >>> fold = RandomDraws(draws=2).fold(splits, 1)
    >>> fold.training.pairs.n_images, fold.retrieval.queries.n_images
    (8, 4)
    """

    draws: int = field(default=10, repr=False)
    test_size: float | int | None = None
    seed: int = 0
    stratify: bool = False
    hold_outs: HoldOut = field(default_factory=HoldOut)
    setting: ClassVar[str] = "draws"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InvalidInputError(f"draws must be at least 1, got {self.draws}")

    @property
    def n_folds(self) -> int:
        """The number of draws."""
        return self.draws

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one draw."""
        if not 0 <= number < self.draws:
            raise InvalidInputError(f"there are draws 0 to {self.draws - 1}, not {number}")
        together = joined(splits.train, splits.test)
        size = splits.test.n_images if self.test_size is None else self.test_size
        train, test = together.split(size, seed=numbered_seed(self.seed, number), stratify=self.stratify)
        return Fold(number, Training(train, self.hold_outs), Retrieval(test, test))

    def redrawn(self, folds: int | None, seed: int) -> RandomDraws:
        """Return so many draws with another seed."""
        return replace(self, draws=folds or self.draws, seed=seed, hold_outs=replace(self.hold_outs, seed=seed))


def joined(first: Pairs, second: Pairs) -> Pairs:
    """Return the pairs of both, those of ``first`` in front; their ids must differ."""
    if (first.labels is None) != (second.labels is None):
        raise InvalidInputError("one part has labels and the other has none; give labels to both or to neither")
    names = dict.fromkeys([*first.class_names, *second.class_names])
    if first.is_multi_label and first.class_names != second.class_names:
        raise InvalidInputError("the two parts name different classes; give both one indicator of the same columns")
    return Pairs(
        _items(first.images, second.images),
        _items(first.texts, second.texts),
        labels=None if first.labels is None else np.concatenate([first.labels, np.asarray(second.labels)]),
        ids=[*first.ids.tolist(), *second.ids.tolist()],
        class_names=tuple(names),
        owners=np.concatenate([first.owners, second.owners + first.n_images]),
        text_ids=[*first.text_ids.tolist(), *second.text_ids.tolist()],
    )


def _items(first: Items, second: Items) -> Items:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    if isinstance(first, tuple) and isinstance(second, tuple):
        return (*first, *second)
    raise InvalidInputError("the two parts are of different kinds, or made when asked; encode them first")
