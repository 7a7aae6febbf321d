"""What every protocol has in common."""

from __future__ import annotations

from typing import Protocol

from diptych.data import DatasetSplits
from diptych.protocols.fold import Fold


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
