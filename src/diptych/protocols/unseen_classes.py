"""Extendable retrieval."""

from __future__ import annotations

from dataclasses import dataclass, field

from diptych.data import DatasetSplits
from diptych.protocols.class_query_hold_out import ClassQueryHoldOut
from diptych.protocols.extendable import Extendable
from diptych.protocols.fold import Fold
from diptych.protocols.training import Training


@dataclass(frozen=True)
class UnseenClasses:
    """Ask for classes that were not learned, in a database of their own.

    The "extendable" setting of Liu et al., on the folds of `Extendable`: with equal seeds the training data are those
    of `SeenClasses`. Parameters are chosen on training classes that are held out whole.

    >>> from diptych.data import load_dataset
    >>> from diptych.protocols import UnseenClasses
    >>> fold = UnseenClasses().fold(load_dataset("scenes", n_train=60, n_test=30, size=32), 0)
    >>> set(fold.training.pairs.labels) & set(fold.retrieval.gallery.labels)
    set()
    """

    folds: Extendable = field(default_factory=Extendable)
    hold_outs: ClassQueryHoldOut = field(default_factory=ClassQueryHoldOut)

    @property
    def setting(self) -> str:
        """``unseen``."""
        return "unseen"

    @property
    def n_folds(self) -> int:
        """The number of shuffles of the classes."""
        return self.folds.folds

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold."""
        fold = self.folds.class_fold(splits, number)
        return Fold(number, Training(fold.train, self.hold_outs), fold.unseen, fold.train_classes, fold.test_classes)
