"""Non-extendable retrieval."""

from __future__ import annotations

from dataclasses import dataclass, field

from diptych.data import DatasetSplits
from diptych.protocols.extendable import Extendable
from diptych.protocols.fold import Fold
from diptych.protocols.query_hold_out import QueryHoldOut
from diptych.protocols.training import Training


@dataclass(frozen=True)
class SeenClasses:
    """Ask for the classes that were learned, in the database that was learned from.

    The "non-extendable" setting of Liu et al., on the folds of `Extendable`. Parameters are chosen with queries held
    out of the training database.

    >>> from diptych.data import load_dataset
    >>> from diptych.protocols import SeenClasses
    >>> fold = SeenClasses().fold(load_dataset("scenes", n_train=60, n_test=30, size=32), 0)
    >>> fold.retrieval.gallery is fold.training.pairs, set(fold.train_classes) & set(fold.test_classes)
    (True, set())
    """

    folds: Extendable = field(default_factory=Extendable)
    hold_outs: QueryHoldOut = field(default_factory=QueryHoldOut)

    @property
    def setting(self) -> str:
        """``seen``."""
        return "seen"

    @property
    def n_folds(self) -> int:
        """The number of shuffles of the classes."""
        return self.folds.folds

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold."""
        fold = self.folds.class_fold(splits, number)
        return Fold(number, Training(fold.train, self.hold_outs), fold.seen, fold.train_classes, fold.test_classes)
