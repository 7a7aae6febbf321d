"""One round of a protocol."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.protocols.retrieval import Retrieval
from diptych.protocols.training import Training


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
