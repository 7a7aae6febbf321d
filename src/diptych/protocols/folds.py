"""Protocols: the split a data set comes with, repeated random splits, and classes that were seen or were not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, Self

import numpy as np

from diptych.data import DatasetSplits, Items, Pairs
from diptych.data.item_sequences import pick_items
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel
from diptych.protocols.retrieval import Retrieval
from diptych.protocols.tuning import (
    ClassQueryHoldOut,
    CrossValidation,
    HoldOut,
    HoldOuts,
    QueryHoldOut,
    class_list,
    numbered_seed,
)

_MIN_CLASSES = 4


@dataclass(frozen=True)
class Training:
    """The pairs to learn from, and how to hold out parts of them to choose parameters.

    Code that chooses and fits a method receives this and nothing else, so that queries, galleries and classes that are
    asked for later cannot leak into it. ``more`` are rows that belong to no pair, by what ``fit`` of a method of
    alignment calls them (``more_images``, ``more_texts``); with them ``pairs`` may be None.
    """

    pairs: Pairs | None
    hold_outs: HoldOuts
    more: Mapping[str, Items] = field(default_factory=dict)

    def fit(self, model: CrossModalModel, *, own_classes: bool = False) -> CrossModalModel:
        """Fit a model on all of it; with ``own_classes`` a picture and its texts are a class where there is none."""
        fit: Callable[..., CrossModalModel] = model.fit
        if self.pairs is None:
            return fit(None, None, **self.more)
        images, texts, labels = self.pairs.aligned()
        return fit(images, texts, self.pairs.owners if labels is None and own_classes else labels, **self.more)


@dataclass(frozen=True)
class Fold:
    """What a method learns from, and what it is asked afterwards.

    ``train_classes`` and ``test_classes`` are empty where classes play no part. ``elsewhere`` are questions of other
    data sets by their names.
    """

    number: int
    training: Training
    retrieval: Retrieval
    train_classes: tuple[str, ...] = ()
    test_classes: tuple[str, ...] = ()
    elsewhere: Mapping[str, Retrieval] = field(default_factory=dict)


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
    hold_outs: HoldOut | CrossValidation = field(default_factory=HoldOut)
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


@dataclass(frozen=True)
class DevelopmentPart:
    """Hold out the development part of a data set: choose by it, and learn from all training pairs."""

    held_out: Pairs = field(repr=False)

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield the training pairs and the development part."""
        yield pairs, self.held_out


@dataclass(frozen=True)
class FewPairs:
    """Learn from few pictures of the training part, each with one text, and perhaps from others without their partner.

    Each draw is an order of the training pictures, whose first ``pairs`` are learned from: smaller numbers of one draw
    are parts of larger ones. With ``unpaired`` the rest is cut into two halves, and the pictures of one and the texts
    of the other are given beside, so that no pair is handed in by another door. Parameters are chosen on the
    development part. The whole test part is asked.

    >>> import numpy as np
    >>> from diptych.data import DatasetSplits, Pairs
    >>> from diptych.protocols import FewPairs
    >>> rows = np.arange(24.0).reshape(12, 2)
    >>> train, dev, test = (Pairs(part, part, ids=part[:, 0]) for part in np.split(rows, 3))
    >>> training = FewPairs(2, unpaired=True).fold(DatasetSplits(train=train, dev=dev, test=test), 0).training
    >>> training.pairs.n_images, len(training.more["more_images"]), len(training.more["more_texts"])
    (2, 1, 1)
    """

    pairs: int
    unpaired: bool = False
    draws: int = field(default=5, repr=False)
    seed: int = 0
    setting: ClassVar[str] = "few pairs"

    @property
    def n_folds(self) -> int:
        """The number of draws."""
        return self.draws

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one draw."""
        if splits.dev is None or not splits.train.is_one_to_one or splits.train.n_images < self.pairs:
            raise InvalidInputError(
                f"FewPairs needs a development part and {self.pairs} training pictures with one text each, "
                f"got {splits.describe()}"
            )
        order = np.random.default_rng([self.seed, number]).permutation(splits.train.n_images)
        chosen, rest = order[: self.pairs], np.sort(order[self.pairs :])
        pairs = splits.train.select(chosen) if len(chosen) else None
        more: dict[str, Items] = {}
        if self.unpaired:
            mixed = np.random.default_rng([self.seed, number, 1]).permutation(rest)
            half = len(mixed) // 2
            more = {
                "more_images": pick_items(splits.train.images, mixed[:half]),
                "more_texts": pick_items(splits.train.texts, mixed[half : 2 * half]),
            }
        return Fold(number, Training(pairs, DevelopmentPart(splits.dev), more), Retrieval(splits.test, splits.test))

    def redrawn(self, folds: int | None, seed: int) -> FewPairs:
        """Return so many draws with another seed."""
        return replace(self, draws=folds or self.draws, seed=seed)


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


@dataclass(frozen=True)
class ClassFold:
    """A half of the classes to learn from, and what is asked afterwards.

    ``train`` is the database of the training classes, ``seen`` asks for these classes again, ``unseen`` for the others,
    of which nothing is in ``train``. The names of the classes are kept in the order in which they were drawn.
    """

    number: int
    train_classes: tuple[str, ...]
    test_classes: tuple[str, ...]
    train: Pairs
    seen: Retrieval
    unseen: Retrieval


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
        if len(classes) < _MIN_CLASSES:
            raise InvalidInputError(
                f"extendable retrieval needs at least {_MIN_CLASSES} classes, two to learn and two to ask for, "
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


@dataclass(frozen=True)
class _HalfOfTheClasses:
    """Learns from half of the classes and asks for the half that ``setting`` names."""

    setting: ClassVar[Literal["seen", "unseen"]]
    folds: Extendable = field(default_factory=Extendable)
    hold_outs: QueryHoldOut | ClassQueryHoldOut = field(default_factory=QueryHoldOut)

    @property
    def n_folds(self) -> int:
        """The number of shuffles of the classes."""
        return self.folds.folds

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold."""
        fold = self.folds.class_fold(splits, number)
        asked = fold.seen if self.setting == "seen" else fold.unseen
        return Fold(number, Training(fold.train, self._hold_outs(number)), asked, fold.train_classes, fold.test_classes)

    def _hold_outs(self, fold: int) -> HoldOuts:
        return self.hold_outs

    def redrawn(self, folds: int | None, seed: int) -> Self:
        """Return so many shuffles of the classes with another seed."""
        drawn = Extendable(folds or self.n_folds, seed)
        return replace(self, folds=drawn, hold_outs=replace(self.hold_outs, seed=seed))


@dataclass(frozen=True)
class SeenClasses(_HalfOfTheClasses):
    """Ask for the classes that were learned, in the database that was learned from.

    The "non-extendable" setting of Liu et al., on the folds of `Extendable`. Parameters are chosen with queries held
    out of the training database.

    >>> from diptych.data import load_dataset
    >>> from diptych.protocols import SeenClasses
    >>> fold = SeenClasses().fold(load_dataset("scenes", n_train=60, n_test=30, size=32), 0)
    >>> fold.retrieval.gallery is fold.training.pairs, set(fold.train_classes) & set(fold.test_classes)
    (True, set())
    """

    hold_outs: QueryHoldOut = field(default_factory=QueryHoldOut)
    setting: ClassVar[Literal["seen", "unseen"]] = "seen"


@dataclass(frozen=True)
class UnseenClasses(_HalfOfTheClasses):
    """Ask for classes that were not learned, in a database of their own.

    The "extendable" setting of Liu et al., on the folds of `Extendable`: with equal seeds the training data are those
    of `SeenClasses`. Parameters are chosen on training classes that are held out whole.

    >>> from diptych.data import load_dataset
    >>> from diptych.protocols import UnseenClasses
    >>> fold = UnseenClasses().fold(load_dataset("scenes", n_train=60, n_test=30, size=32), 0)
    >>> set(fold.training.pairs.labels) & set(fold.retrieval.gallery.labels)
    set()
    """

    hold_outs: ClassQueryHoldOut = field(default_factory=ClassQueryHoldOut)
    setting: ClassVar[Literal["seen", "unseen"]] = "unseen"

    def _hold_outs(self, fold: int) -> HoldOuts:
        # Folds of few classes would hold out the classes at the same places of their lists.
        return replace(self.hold_outs, fold=fold)
