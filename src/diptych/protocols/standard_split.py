"""The split that a data set comes with."""

from __future__ import annotations

from dataclasses import dataclass, field

from diptych.data import DatasetSplits
from diptych.errors import InvalidInputError
from diptych.protocols.fold import Fold
from diptych.protocols.hold_out import HoldOut
from diptych.protocols.retrieval import Retrieval
from diptych.protocols.training import Training


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

    @property
    def setting(self) -> str:
        """``standard``."""
        return "standard"

    @property
    def n_folds(self) -> int:
        """One: there is one split."""
        return 1

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return the split as the only fold."""
        if number != 0:
            raise InvalidInputError(f"a standard split has fold 0 alone, not {number}")
        return Fold(0, Training(splits.train, self.hold_outs), Retrieval(splits.test, splits.test))
