"""One division of the classes into those to learn from and those to ask for."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.data import Pairs
from diptych.protocols.retrieval import Retrieval


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
